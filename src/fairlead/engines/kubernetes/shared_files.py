"""Files that all servers of one database share through a Secret of the cluster: keys and the first credentials.

`configuration.py` calls it at a start. Files in the Secret win over those of a server, so that all servers get the
files of the first one.
"""

import base64
from collections.abc import Mapping

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError
from fairlead.engines.kubernetes.client.resources import SECRET, Manifest
from fairlead.model.errors import Refused

_LABELS = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/managed-by": "fairlead"}
#: How often another server may be faster before this one gives up.
_TRIES = 10


class _Secret(msgspec.Struct):
    metadata: objects.Metadata = objects.Metadata()
    data: dict[str, str] = {}


async def share_files(api: Api, secret: str, mine: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of the Secret NAMESPACE/NAME, after adding those of `mine` that it lacked; raises Refused."""
    namespace, _, name = secret.partition("/")
    if not namespace or not name:
        raise Refused(f"--keys-secret {secret} is not a valid Secret; write NAMESPACE/NAME")
    try:
        for _ in range(_TRIES):
            stored = await _load(api, namespace, name)
            stored_files = (
                {} if stored is None else {file: base64.b64decode(text) for file, text in stored.data.items()}
            )
            more = {file: content for file, content in mine.items() if file not in stored_files}
            if stored is not None and not more:
                return stored_files
            if await _write(api, SECRET.path(namespace), name, stored, more):
                return {**stored_files, **more}
    except (ApiError, OSError) as error:
        raise Refused(f"The keys in the Secret {secret} cannot be shared: {error}") from error
    raise Refused(f"The keys in the Secret {secret} cannot be shared: other servers keep changing it")


async def _load(api: Api, namespace: str, name: str) -> _Secret | None:
    content = await api.find(SECRET.path(namespace, name))
    return None if content is None else msgspec.json.decode(content, type=_Secret)


async def _write(api: Api, folder: str, name: str, stored: _Secret | None, files: Mapping[str, bytes]) -> bool:
    """Create the Secret, or add to it as it was read; False if it has changed since."""
    body: Manifest = {"data": _encoded(files)}
    try:
        if stored is None:
            whole = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": _LABELS}, **body}
            await api.request("POST", folder, whole)
        else:
            body["metadata"] = {"resourceVersion": stored.metadata.resource_version}
            await api.request("PATCH", f"{folder}/{name}", body, content=MERGE)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {file: base64.b64encode(content).decode() for file, content in files.items()}
