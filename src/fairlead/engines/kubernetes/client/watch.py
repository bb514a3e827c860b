"""One kind of object, kept as it is in the cluster: listed once, then watched, and taken up where the watch broke.

The engine has one `Watch` per kind. A watch that is cut goes on from the last version that was seen; when the server
no longer has that version (410), it lists again and works out what is new and what is gone.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError, error_message

log = logging.getLogger(__name__)

#: Objects per page of a list.
_PAGE = "500"
#: The server ends a watch after so many seconds.
_WATCH_SECONDS = 300
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
#: A watch that stood for so long was a good one: the next is tried at once.
_LONG_ENOUGH = 10.0
#: One that was over so soon and brought nothing is not to be trusted.
_TOO_SHORT = 1.0


class HasMetadata(Protocol):
    @property
    def metadata(self) -> objects.Metadata: ...


Item = TypeVar("Item", bound=HasMetadata)


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    # Named `continue` in the interface, which Python has for itself.
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
    """The server no longer knows the version from which we want to go on."""


class ObjectWatch(Generic[Item]):
    """Objects of one kind by (namespace, name). `changed(before, after)` is called with each change."""

    #: The server says every minute how far it is: a longer silence, in seconds, is a broken connection.
    silence = 150.0

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
        pause = _FIRST_PAUSE
        while True:
            began = time.monotonic()
            try:
                if not self._version:
                    await self.list()
                has_news = await self._watch()
                if not has_news and time.monotonic() - began < _TOO_SHORT:
                    # As what serves a kind does that was uninstalled and installed again: it has nothing for us.
                    log.info("the watch on %s ended at once; all is listed anew", self._path)
                    self._version = ""
            except WatchExpired:
                self._version = ""
            except (OSError, ApiError, TimeoutError, msgspec.DecodeError) as error:
                log.info("the watch on %s is taken up again: %s", self._path, error_message(error))
                if isinstance(error, ApiError | msgspec.DecodeError):
                    self._version = ""
            except Exception:
                # Nobody waits for this task, and without it nothing would be seen any more.
                log.exception("the watch on %s failed, and begins again", self._path)
                self._version = ""
            if time.monotonic() - began > _LONG_ENOUGH:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def list(self) -> None:
        """Read everything, and tell what differs from before."""
        found: dict[tuple[str, str], Item] = {}
        query = {**self._query, "limit": _PAGE}
        while True:
            page = self._list.decode(await self._api.request("GET", self._path, query=query))
            for item in page.items:
                found[_key(item)] = item
            if not page.metadata.next_page:
                break
            query = {**query, "continue": page.metadata.next_page}
        before, self.objects = self.objects, found
        self._version = page.metadata.resource_version
        for key, item in before.items():
            if key not in found:
                self._tell(item, None)
        for key, item in found.items():
            known = before.get(key)
            if known is None or known.metadata.resource_version != item.metadata.resource_version:
                self._tell(known, item)

    def _tell(self, before: Item | None, after: Item | None) -> None:
        """What one object does to those who hear of it is not to keep the others' news from them."""
        try:
            self._changed(before, after)
        except Exception:
            log.exception("a change that the watch on %s brought cannot be taken in", self._path)

    async def _watch(self) -> bool:
        """Until the server ends it; whether anything came."""
        query = {
            **self._query,
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        rest, has_news = b"", False
        now = asyncio.get_running_loop().time
        # The silence before its first word counts too: nobody else would notice it.
        async with asyncio.timeout(self.silence) as patience, self._api.stream(self._path, query) as pieces:
            async for piece in pieces:
                has_news = True
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.strip():
                        self._take(self._line.decode(line))
                patience.reschedule(now() + self.silence)
        return has_news

    def _take(self, line: _Line) -> None:
        if line.type == "ERROR":
            error = msgspec.json.decode(line.object, type=_ErrorObject)
            if error.code == 410:
                raise WatchExpired
            raise ApiError(error.code, "", error.message)
        if line.type == "BOOKMARK":
            # An object with nothing in it but the version, and null where lists would be.
            self._version = msgspec.json.decode(line.object, type=_Bookmark).metadata.resource_version
            return
        item: Item = self._item.decode(line.object)
        self._version = item.metadata.resource_version
        key = _key(item)
        before = self.objects.get(key)
        if line.type == "DELETED":
            self.objects.pop(key, None)
            self._tell(before or item, None)
        else:
            self.objects[key] = item
            self._tell(before, item)


def _key(item: HasMetadata) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name
