"""`snapshot`: prints what a scheduler sees now or saw in a recorded cycle, for `schedule`.

Of the server, of a cluster with KAI, or from KAI's own snapshot archive.
"""

import msgspec

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.past import AT, at_query
from fairlead.cli.session.session import ServerSession

_FLAGS = (
    AT,
    Flag("engine", "Read the cluster itself, without a server", choices=("kubernetes",), placeholder="kubernetes"),
    Flag("kubeconfig", "Kubeconfig of that cluster", placeholder="FILE", default="$KUBECONFIG"),
    Flag("archive", "Convert this archive of KAI's snapshot plugin; - is standard input", placeholder="FILE"),
)
_DETAILS = """\
  fairlead snapshot --at 14:05 | fairlead schedule -f -
prints the decisions of the last scheduling cycle at or before 14:05 UTC.
  fairlead snapshot --engine kubernetes > state.json
reads what KAI sees in a cluster, with or without Fairlead in it."""
#: They import the scheduler, so they are loaded only for files and clusters.
_SNAPSHOTS, _CLUSTER = "scheduling.snapshot_files", "scheduling.kai_cluster"


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Print the snapshot that the server's scheduler sees, or KAI in a cluster"
    return (Command("", summary, _snapshot, _FLAGS, details=_DETAILS),)


def _snapshot(invocation: Invocation) -> int:
    if sum(bool(invocation.get(flag)) for flag in ("at", "engine", "archive")) > 1:
        raise UsageError("Use only one of --at, --engine and --archive.")
    if invocation.get("engine"):
        return _print(invocation, load_module(_CLUSTER).read_cluster(str(invocation.get("kubeconfig") or "")))
    if invocation.get("archive"):
        return _print(invocation, load_module(_SNAPSHOTS).convert_file(invocation, "archive"))
    query = at_query(invocation)
    session = ServerSession(invocation)
    # Byte for byte as the server wrote it, so that replaying it gives the same decisions.
    session.console.raw(session.client.snapshot(**query) + b"\n")
    session.close()
    return OK


def _print(invocation: Invocation, snapshot: msgspec.Struct) -> int:
    invocation.environment.stdout.write(msgspec.json.encode(snapshot).decode() + "\n")
    return OK
