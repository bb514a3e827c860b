"""The objects of the API server in memory: versions, preconditions, finalizers, and who watches what."""

import itertools
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.resources import Resource

Body = dict[str, Any]
Key = tuple[str, str]
#: Changes of a kind that are kept for watches that begin later.
_KEPT = 200_000


class Refusal(Exception):
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


def timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge(into: Body, change: Mapping[str, Any]) -> None:
    for name, value in change.items():
        if value is None:
            into.pop(name, None)
        elif isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


class Selector:
    """Labels and fields as a query has them: `a=b`, `a`, `a.b=c`, with commas."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._labels = [part.partition("=") for part in query.get("labelSelector", "").split(",") if part]
        self._fields = [part.partition("=") for part in query.get("fieldSelector", "").split(",") if part]

    def matches(self, body: Body) -> bool:
        labels = body["metadata"].get("labels") or {}
        if any(name not in labels or (equals and labels[name] != value) for name, equals, value in self._labels):
            return False
        return all(str(_field(body, name)) == value for name, _, value in self._fields)


def _field(body: Any, path: str) -> Any:
    for name in path.split("."):
        body = body.get(name, "") if isinstance(body, dict) else ""
    return body


class Table:
    """All objects of one kind. `tell` gets each change as (type, key, body)."""

    versions = itertools.count(1)
    newest = 0

    def __init__(self, kind: Resource, tell: Callable[["Table", str, Body], None]) -> None:
        self.kind = kind
        self.bodies: dict[Key, Body] = {}
        #: The latest changes as (version, body, line of a watch).
        self.changes: deque[tuple[int, Body, bytes]] = deque(maxlen=_KEPT)
        self.listeners: list[Callable[[Body, bytes], None]] = []
        self._tell = tell

    def _publish(self, type: str, body: Body) -> Body:
        version = next(Table.versions)
        Table.newest = version
        body["metadata"]["resourceVersion"] = str(version)
        line = msgspec.json.encode({"type": type, "object": body}) + b"\n"
        self.changes.append((version, {"metadata": body["metadata"]}, line))
        for listener in tuple(self.listeners):
            listener(body, line)
        self._tell(self, type, body)
        return body

    def select(self, namespace: str, selector: Selector) -> Iterator[Body]:
        for (of, _), body in self.bodies.items():
            if namespace in ("", of) and selector.matches(body):
                yield body

    def get(self, key: Key) -> Body:
        if key not in self.bodies:
            raise Refusal(404, "NotFound", f'{self.kind.plural} "{key[1]}" not found')
        return self.bodies[key]

    def create(self, namespace: str, body: Body) -> Body:
        metadata = body.setdefault("metadata", {})
        name = metadata.get("name") or f"{metadata.pop('generateName', '')}{uuid.uuid4().hex[:5]}"
        if (namespace, name) in self.bodies:
            raise Refusal(409, "AlreadyExists", f'{self.kind.plural} "{name}" already exists')
        given = {name: value for name, value in metadata.items() if name not in ("uid", "resourceVersion")}
        body["metadata"] = given | {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": timestamp()}
        body["metadata"]["generation"] = 1
        if namespace:
            body["metadata"]["namespace"] = namespace
        body |= {"apiVersion": self.kind.api, "kind": self.kind.kind}
        self.bodies[namespace, name] = body
        return self._publish("ADDED", body)

    def replace(self, key: Key, body: Body) -> Body:
        """The object as it is from now on; without finalizers it is gone if its deletion was asked for."""
        before = self.get(key)
        if before == body:
            return before
        if before.get("spec") != body.get("spec"):
            body["metadata"]["generation"] += 1
        if body["metadata"].get("deletionTimestamp") and not body["metadata"].get("finalizers"):
            return self.remove(key)
        self.bodies[key] = body
        return self._publish("MODIFIED", body)

    def change(self, key: Key, change: Mapping[str, Any]) -> Body:
        body = msgspec.json.decode(msgspec.json.encode(self.get(key)))
        merge(body, change)
        return self.replace(key, body)

    def remove(self, key: Key) -> Body:
        return self._publish("DELETED", self.bodies.pop(key))

    def delete(self, key: Key, options: Mapping[str, Any]) -> Body:
        body = self.get(key)
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted not in (None, body["metadata"]["uid"]):
            raise Refusal(409, "Conflict", "the UID in the precondition is another")
        if body["metadata"].get("finalizers") or self.kind.kind == "Pod":
            leaving = {"deletionTimestamp": timestamp(), "deletionGracePeriodSeconds": 0}
            return body if "deletionTimestamp" in body["metadata"] else self._mark(key, leaving)
        return self.remove(key)

    def _mark(self, key: Key, members: Body) -> Body:
        body = msgspec.json.decode(msgspec.json.encode(self.bodies[key]))
        body["metadata"] |= members
        self.bodies[key] = body
        return self._publish("MODIFIED", body)

    def apply(self, key: Key, body: Body) -> Body:
        """Server-side apply, for objects that only one manager writes."""
        asked, there = body["metadata"], self.bodies.get(key)
        if there is None:
            if "uid" in asked:
                raise Refusal(409, "Conflict", "it is not there any more")
            return self.create(key[0], body)
        is_it = asked.get("uid", there["metadata"]["uid"]) == there["metadata"]["uid"]
        is_version = asked.get("resourceVersion", there["metadata"]["resourceVersion"])
        if not is_it or is_version != there["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "it is another, or was changed")
        return self.change(key, {**body, "metadata": {**asked, "resourceVersion": is_version}})

    def patch(self, key: Key, steps: list[Body]) -> Body:
        """A JSON patch of members of objects, with `test` for members of the metadata."""
        body = msgspec.json.decode(msgspec.json.encode(self.get(key)))
        for step in steps:
            *path, last = step["path"].strip("/").split("/")
            place = body
            for name in path:
                place = place.setdefault(name, {})
            if step["op"] == "test" and place.get(last) != step["value"]:
                raise Refusal(422, "Invalid", f"testing {step['path']} failed")
            if step["op"] == "add":
                place[last] = step["value"]
            elif step["op"] == "remove":
                place.pop(last, None)
        return self.replace(key, body)
