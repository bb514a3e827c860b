"""The output of pods that are gone, as Grafana Loki has it: an agent on the nodes sends it there.

Made by the configuration; the engine asks it for pods that the cluster has deleted and whose output the server did not
keep. Streams are found by the labels `namespace`, `pod` and `container`, which Alloy and Promtail set.
"""

import asyncio
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime

import msgspec

from fairlead.engines.base import LogRequest
from fairlead.model.clock import Millis
from fairlead.model.errors import NotFound, Refused, Unavailable
from fairlead.model.pods.origin import PodOrigin

#: The most lines of one answer, as Loki allows by default.
_PAGE = 5000
_SECONDS = 30.0
#: Milliseconds before a pod's creation and after its end in which its lines may be: clocks differ, agents are late.
_MARGIN: Millis = 10 * 60 * 1000
#: The longest span that Loki answers for by default, a little less than 30 days.
_LONGEST: Millis = 30 * 24 * 3600 * 1000
_NANOSECONDS = 1_000_000

#: When a line was written, in nanoseconds, and the line.
Entry = tuple[int, str]


class _Stream(msgspec.Struct):
    values: list[tuple[str, str]] = []


class _Data(msgspec.Struct):
    result: list[_Stream] = []


class _Answer(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


class Loki:
    def __init__(self, url: str, tenant: str = "", page: int = _PAGE) -> None:
        self._url = f"{url.rstrip('/')}/loki/api/v1/query_range"
        self._tenant = tenant
        self._page = page

    async def read(self, request: LogRequest) -> AsyncIterator[bytes]:
        """What is asked for of the output of a pod. Raises NotFound if Loki has none of it."""
        origin = request.origin
        if origin is None or request.attempt is not None:
            raise NotFound("The pod was deleted from the cluster, and Loki does not distinguish its attempts")
        remaining, is_empty = request.limit_bytes, True
        async for entry in self._entries(request, origin):
            is_empty = False
            line = _render(entry, has_time=request.timestamps)
            if remaining is not None:
                line = line[:remaining]
                remaining -= len(line)
            yield line
            if remaining == 0:
                return
        if is_empty and request.tail != 0 and request.since is None:
            raise NotFound(f"The pod {origin.pod} was deleted from the cluster, and Loki has no output of it")

    async def _entries(self, request: LogRequest, origin: PodOrigin) -> AsyncIterator[Entry]:
        now = round(time.time() * 1000)
        end = now if origin.ended_at is None else min(now, origin.ended_at + _MARGIN)
        start = max(request.since or 0, origin.created_at - _MARGIN, end - _LONGEST)
        if request.tail is not None:
            for entry in await self._last(origin, (start * _NANOSECONDS, end * _NANOSECONDS), request.tail):
                yield entry
            return
        since, seen = start * _NANOSECONDS, set[Entry]()
        while True:
            page = await self._query(origin, (since, end * _NANOSECONDS), self._page, "forward")
            for entry in page:
                if entry not in seen:
                    yield entry
            if len(page) < self._page or page[-1][0] == since:
                return
            # The next page begins with the last time of this one, which may have further lines.
            since = page[-1][0]
            seen = {entry for entry in page if entry[0] == since}

    async def _last(self, origin: PodOrigin, span: tuple[int, int], count: int) -> list[Entry]:
        """The last lines, page by page from the end."""
        start, end = span
        lines: list[Entry] = []
        while len(lines) < count:
            # The time of the first line may have further lines.
            first = [entry for entry in lines if entry[0] == lines[0][0]]
            wanted = min(self._page, count - len(lines) + len(first))
            page = await self._query(origin, (start, end), wanted, "backward")
            earlier = page[: len(page) - len(first)]
            lines = [*earlier, *lines]
            if len(page) < wanted or not earlier:
                break
            # The end of a span is not part of it.
            end = lines[0][0] + 1
        return lines[-count:] if count else []

    async def _query(self, origin: PodOrigin, span: tuple[int, int], limit: int, direction: str) -> list[Entry]:
        """Sorted by time."""
        names = {"namespace": origin.namespace, "pod": origin.pod, "container": origin.container}
        selector = ", ".join(f'{name}="{value}"' for name, value in names.items() if value)
        parameters = {
            "query": f"{{{selector}}}",
            "start": span[0],
            "end": span[1],
            "limit": limit,
            "direction": direction,
        }
        content = await asyncio.to_thread(self._ask, f"{self._url}?{urllib.parse.urlencode(parameters)}")
        try:
            streams = msgspec.json.decode(content, type=_Answer).data.result
        except msgspec.MsgspecError as error:
            raise Unavailable(f"{self._url} does not answer like Loki: {error}") from error
        if direction == "backward":
            for stream in streams:
                stream.values.reverse()
        return _sorted(streams)

    def _ask(self, url: str) -> bytes:
        headers = {"X-Scope-OrgID": self._tenant} if self._tenant else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_SECONDS) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            message = error.read().decode("utf-8", "replace").strip()[:300]
            raise Refused(f"Loki refused to show the output (HTTP {error.code}): {message}") from error
        except OSError as error:
            raise Unavailable(f"Loki at {self._url} does not answer: {error}") from error


def _sorted(streams: Iterable[_Stream]) -> list[Entry]:
    # Stable: lines of one stream that were written at the same time stay in their order.
    entries = [(int(at), line) for stream in streams for at, line in stream.values]
    return sorted(entries, key=lambda entry: entry[0])


def _render(entry: Entry, *, has_time: bool) -> bytes:
    at, line = entry
    seconds, rest = divmod(at, 1_000_000_000)
    prefix = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z " if has_time else ""
    return f"{prefix}{line}\n".encode()
