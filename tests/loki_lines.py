"""The output of pods that tests of Loki send there, as an agent on the nodes does."""

import json
import urllib.request

NAMESPACE, POD = "runai-team-a", "train-0-abcde"
#: Lines of the main container; the fourth and the fifth were written at the same time.
LINES = tuple(f"step {number}: loss é {number / 10}" for number in range(12))
SECOND = 1_000_000_000


def times(start: int) -> list[int]:
    """When the lines were written, in nanoseconds."""
    return [start + (number - (number > 3)) * SECOND + 123_456_789 for number in range(len(LINES))]


def send(url: str, start: int, namespace: str = NAMESPACE, pod: str = POD) -> None:
    """`start` is in nanoseconds. Another container and another pod have output too."""
    own = [[str(at), line] for at, line in zip(times(start), LINES, strict=True)]
    other = [[str(start), "not asked for"]]
    streams = [
        {"stream": {"namespace": namespace, "pod": pod, "container": "main"}, "values": own},
        {"stream": {"namespace": namespace, "pod": pod, "container": "clone"}, "values": other},
        {"stream": {"namespace": namespace, "pod": f"{pod}-2", "container": "main"}, "values": other},
    ]
    body = json.dumps({"streams": streams}).encode()
    request = urllib.request.Request(f"{url}/loki/api/v1/push", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()
