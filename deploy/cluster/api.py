"""The few calls of the Kubernetes API that starting a cluster and standing in for kubelets need; standard library only.

One connection per `Api`, kept open; not for use from several threads.
"""

import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.cluster.errors import ClusterError

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_GROUPS = {"v1": "/api/v1"}
_PLURALS = {"PriorityClass": "priorityclasses", "StorageClass": "storageclasses", "RuntimeClass": "runtimeclasses"}


class ApiError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    def __init__(self, kubeconfig: Path, timeout: float = 60.0) -> None:
        self._timeout = timeout
        self._connection: http.client.HTTPSConnection | None = None
        try:
            config = json.loads(kubeconfig.read_text())
        except PermissionError as error:
            raise ClusterError(f"{kubeconfig} is for whoever started the cluster. Try with sudo.") from error
        cluster = config["clusters"][0]["cluster"]
        self._address = urllib.parse.urlsplit(cluster["server"])
        self._authority = cluster["certificate-authority"]
        self._token = config["users"][0]["user"]["token"]

    def call(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Any:
        """The answer's document; None where the object is not there and only reading or removing was asked."""
        for attempt in (1, 2):
            try:
                answer = self._send(method, path, body, kind)
                text = answer.read()
            except (OSError, http.client.HTTPException):
                self.close()
                # A connection that was open since the last call may have been closed by the other side meanwhile.
                if attempt == 2:
                    raise
                continue
            if answer.status == 404 and method in ("GET", "DELETE"):
                return None
            if answer.status >= 300:
                raise ApiError(answer.status, text.decode(errors="replace"))
            return json.loads(text) if answer.headers.get_content_type() == "application/json" else text.decode()
        raise AssertionError("not reached")

    def apply(self, wanted: Object) -> Object:
        """Server-side apply under our name, by force: the cluster's own parts are nobody else's."""
        path = f"{path_of(wanted)}?fieldManager=fairlead-cluster&force=true"
        applied: Object = self.call("PATCH", path, wanted, APPLY)
        return applied

    def watch_from(self, path: str, version: str) -> Iterator[tuple[str, Object]]:
        """Changes since that version as they come, until the server ends the stream or has forgotten the version."""
        joint = "&" if "?" in path else "?"
        # Streams end before a silent connection would be taken for a dead one.
        options = f"watch=true&timeoutSeconds={self._timeout * 0.8:.0f}&resourceVersion={version}"
        answer = self._send("GET", f"{path}{joint}{options}")
        try:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event["type"], event["object"]
        finally:
            self.close()

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(
        self, method: str, path: str, body: Object | None = None, kind: str = "application/json"
    ) -> http.client.HTTPResponse:
        if self._connection is None:
            context = ssl.create_default_context(cafile=self._authority)
            self._connection = http.client.HTTPSConnection(
                self._address.hostname or "", self._address.port, context=context, timeout=self._timeout
            )
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind, "Accept": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        return self._connection.getresponse()

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException, ApiError):
            return bool(self.call("GET", "/readyz") == "ok")
        return False


def path_of(wanted: Object) -> str:
    version, kind, metadata = wanted["apiVersion"], wanted["kind"], wanted["metadata"]
    group = _GROUPS.get(version) or f"/apis/{version}"
    space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = _PLURALS.get(kind) or f"{kind.lower()}s"
    return f"{group}{space}/{plural}/{metadata['name']}"
