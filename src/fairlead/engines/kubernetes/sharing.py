"""Files that all servers of one database need alike, kept in a Secret of the cluster: keys, and the first credentials.

`configuration.py` calls it at a start. What the Secret has goes before what a server has, so that all end up with the
files of whoever was first.
"""

import base64
from collections.abc import Mapping

import msgspec

from fairlead.engines.kubernetes.api import MERGE, Api, ApiError
from fairlead.engines.kubernetes.resources import SECRET
from fairlead.model.errors import Refused

_LABELS = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/managed-by": "fairlead"}


class _Secret(msgspec.Struct):
    data: dict[str, str] = {}


async def share_files(api: Api, secret: str, mine: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of the Secret NAMESPACE/NAME, with those of `mine` added that it lacked; raises Refused."""
    namespace, _, name = secret.partition("/")
    if not namespace or not name:
        raise Refused(f"--keys-secret {secret} names no Secret; write NAMESPACE/NAME")
    try:
        kept = await _load(api, namespace, name)
        if kept is None:
            kept = await _make(api, namespace, name, mine)
        more = {file: content for file, content in mine.items() if file not in kept}
        if more:
            await api.ask("PATCH", SECRET.path(namespace, name), {"data": _encoded(more)}, content=MERGE)
        return {**kept, **more}
    except (ApiError, OSError) as error:
        raise Refused(f"The keys in the Secret {secret} cannot be shared: {error}") from error


async def _load(api: Api, namespace: str, name: str) -> dict[str, bytes] | None:
    try:
        found = msgspec.json.decode(await api.get(SECRET.path(namespace, name)), type=_Secret)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    return {file: base64.b64decode(text) for file, text in found.data.items()}


async def _make(api: Api, namespace: str, name: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    metadata = {"name": name, "namespace": namespace, "labels": _LABELS}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": _encoded(files)}
    try:
        await api.ask("POST", SECRET.path(namespace), body)
    except ApiError as error:
        if error.status != 409:
            raise
        # Another server was quicker, or an answer to our own request was lost.
        return await _load(api, namespace, name) or {}
    return dict(files)


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {file: base64.b64encode(content).decode() for file, content in files.items()}
