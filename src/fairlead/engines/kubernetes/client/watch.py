"""A copy of all objects of one kind: listed once, then watched.

A watch that breaks continues from the last version that was seen. If the server no longer has that version (410), the
objects are listed again, and the differences are reported.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError, error_message

log = logging.getLogger(__name__)

#: Objects per page of a list.
_PAGE = "500"
#: Seconds after which the server ends a watch.
_WATCH_SECONDS = 300
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
#: Seconds after which a watch counts as working: the next one starts at once.
_LONG_ENOUGH = 10.0
#: Seconds within which a watch that ends without data is not trusted.
_TOO_SHORT = 1.0


class HasMetadata(Protocol):
    @property
    def metadata(self) -> objects.Metadata: ...


Item = TypeVar("Item", bound=HasMetadata)


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    # `continue` in the API, which is a keyword in Python.
    next_page: str = msgspec.field(name="continue", default="")


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: objects.Metadata


class _ErrorObject(msgspec.Struct):
    code: int = 0
    message: str = ""


class WatchExpired(Exception):
    """The server no longer has the version from which the watch should continue."""


class ObjectWatch(Generic[Item]):
    """Objects of one kind by (namespace, name). Calls `changed(before, after)` for each change."""

    #: Seconds. The server sends a bookmark every minute, so a longer silence is a broken connection.
    idle_timeout = 150.0

    def __init__(
        self,
        api: Api,
        path: str,
        kind: type[Item],
        changed: Callable[[Item | None, Item | None], None],
        label: str = "",
        fields: str = "",
    ) -> None:
        self._api = api
        self._path = path
        self._query = {"labelSelector": label} if label else {}
        self._query |= {"fieldSelector": fields} if fields else {}
        self._item: Any = msgspec.json.Decoder(kind)
        self._list: Any = msgspec.json.Decoder(
            msgspec.defstruct("List", [("metadata", _ListMetadata), ("items", list[kind], [])])  # type: ignore[valid-type]  # a type made at run time
        )
        self._line = msgspec.json.Decoder(_Line)
        self._changed = changed
        self.objects: dict[tuple[str, str], Item] = {}
        self._version = ""

    def values(self) -> Iterator[Item]:
        return iter(self.objects.values())

    async def run(self) -> None:
        """Until cancelled."""
        pause, now = _FIRST_PAUSE, asyncio.get_running_loop().time
        while True:
            began = now()
            try:
                if not self._version:
                    await self.list()
                has_data = await self._watch()
                if not has_data and now() - began < _TOO_SHORT:
                    # The kind may have been uninstalled and installed again.
                    log.info("The watch on %s ended at once; listing again", self._path)
                    self._version = ""
            except WatchExpired:
                self._version = ""
            except (OSError, ApiError, TimeoutError, msgspec.DecodeError) as error:
                log.info("Restarting the watch on %s: %s", self._path, error_message(error))
                if isinstance(error, ApiError | msgspec.DecodeError):
                    self._version = ""
            except Exception:
                # Nobody awaits this task, and without it no change would be seen any more.
                log.exception("Restarting the watch on %s, which failed", self._path)
                self._version = ""
            if now() - began > _LONG_ENOUGH:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def list(self) -> None:
        """Read everything, and report the differences."""
        listed: dict[tuple[str, str], Item] = {}
        query = {**self._query, "limit": _PAGE}
        while True:
            page = self._list.decode(await self._api.request("GET", self._path, query=query))
            for item in page.items:
                listed[_key(item)] = item
            if not page.metadata.next_page:
                break
            query = {**query, "continue": page.metadata.next_page}
        before, self.objects = self.objects, listed
        self._version = page.metadata.resource_version
        for key, item in before.items():
            if key not in listed:
                self._report(item, None)
        for key, item in listed.items():
            known = before.get(key)
            if known is None or known.metadata.resource_version != item.metadata.resource_version:
                self._report(known, item)

    def _report(self, before: Item | None, after: Item | None) -> None:
        """An error about one object must not suppress the changes of others."""
        try:
            self._changed(before, after)
        except Exception:
            log.exception("Cannot process a change from the watch on %s", self._path)

    async def _watch(self) -> bool:
        """Until the server ends it; whether any data came."""
        query = {
            **self._query,
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        rest, has_data = b"", False
        now = asyncio.get_running_loop().time
        # The time before the first line counts too: nobody else would notice it.
        async with asyncio.timeout(self.idle_timeout) as patience, self._api.stream(self._path, query) as pieces:
            async for piece in pieces:
                has_data = True
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        self._process(self._line.decode(line))
                patience.reschedule(now() + self.idle_timeout)
        return has_data

    def _process(self, line: _Line) -> None:
        if line.type == "ERROR":
            error = msgspec.json.decode(line.object, type=_ErrorObject)
            if error.code == 410:
                raise WatchExpired
            raise ApiError(error.code, "", error.message)
        if line.type == "BOOKMARK":
            # An object that has only a version, and null instead of lists.
            self._version = msgspec.json.decode(line.object, type=_Bookmark).metadata.resource_version
            return
        item: Item = self._item.decode(line.object)
        self._version = item.metadata.resource_version
        key = _key(item)
        before = self.objects.get(key)
        if line.type == "DELETED":
            self.objects.pop(key, None)
            self._report(before or item, None)
        else:
            self.objects[key] = item
            self._report(before, item)


def _key(item: HasMetadata) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name
