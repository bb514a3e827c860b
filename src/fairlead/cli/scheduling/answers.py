"""Answers of `why`, `plan`, `what-if` and `estimate` as text. They come as JSON, from the server or from a file."""

import time
from collections.abc import Callable, Sequence

from fairlead.cli.command import Invocation
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.terminal.amounts import amount
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.times import span
from fairlead.client.json_object import Json

SNAPSHOT = Flag(
    "snapshot", "Ask about this snapshot instead of a server; - is standard input", short="f", placeholder="FILE"
)
WORKLOAD = Flag("workload", "The workload, instead of NAME", placeholder="NAME")
RUNTIMES = Flag("runtimes", "With --snapshot: JSON with declared times or similar runs by workload", placeholder="FILE")
#: The module that answers on a file; it imports the scheduler, so it is loaded only then.
OFFLINE = "scheduling.offline"
#: Changes that are shown without -o json.
_SHOWN = 12
_NAMES = 4
#: What a running time rests on, where the word of the API says too little beside a time.
_SHOWN_BASIS = {"longer than all similar runs": "it has already run longer than all similar runs"}


def read_workload(invocation: Invocation) -> str:
    """The workload that a question is about: the argument, or the flag."""
    names = [*invocation.names, *filter(None, [invocation.get("workload")])]
    if len(names) != 1:
        command = " ".join(invocation.words) or "the command"
        raise UsageError(f"Name one workload, as in `fairlead {command} NAME` or with --workload NAME.")
    name: str = names[0]
    return name


def show_changes(console: Console, answer: Json) -> None:
    """What would start a waiting workload, best first."""
    changes: list[Json] = answer["changes"]
    if answer["status"] == "starts":
        console.title("What would start it")
        console.data(f"- {answer['message']}{_price(answer['effects'])}")
    elif answer["status"] in ("waits", "never"):
        console.title("What would start it (each change was tried out)")
        for change in changes[:_SHOWN]:
            console.data(f"- {change['message']}.{_price(change['effects'])}")
        if len(changes) > _SHOWN:
            console.data(f"… and {len(changes) - _SHOWN} more; `-o json` has all.")
        if not changes:
            console.data(
                "- None of the changes that were tried would start it. `fairlead what-if` tries several together."
            )
    if answer["notSearched"]:
        console.data(f"Not tried, because the cluster is large: {', '.join(answer['notSearched'])}.")
    show_basis(console, answer)


def show_basis(console: Console, answer: Json) -> None:
    """The state that an answer is about, and what it takes for granted."""
    revision = answer.get("revision")
    if revision is not None:
        console.data("")
        assumed = " ".join(answer["assumptions"])
        console.data(console.paint(f"Computed on revision {revision}. Assumed: {assumed}", "grey"))


def show_why(console: Console, answer: Json) -> None:
    """A whole answer to `why` from a file."""
    console.data(f"{answer['workload']} ({answer['project']}): {answer['message']}")
    if answer["status"] != "notWaiting":
        show_changes(console, answer)


def _price(effects: Json) -> str:
    """Who suffers; nothing if nobody does."""
    parts = [
        f"{verb} {shown_workloads(effects[member])}"
        for member, verb in (("evicted", "evicts"), ("moved", "moves"), ("delayed", "delays"))
        if effects[member].get("workloads") or effects[member].get("hidden")
    ]
    return f" It {'; '.join(parts)}." if parts else ""


def shown_workloads(concerned: Json) -> str:
    refs: Sequence[Json] = concerned.get("workloads", ())
    names = [f"{ref['workload']} ({ref['project']})" for ref in refs[:_NAMES]]
    if len(refs) > _NAMES:
        names.append(f"{len(refs) - _NAMES} more")
    if hidden := concerned.get("hidden", 0):
        names.append(f"{hidden} of other projects")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def show_plan(console: Console, plan: Json) -> None:
    """What would happen if a workload were submitted now."""
    console.data(f"{plan['workload']} ({plan['project']}): {plan['message']}")
    for pod in plan["pods"]:
        numbers = ", ".join(map(str, pod["devices"]))
        devices = f", {'GPU' if len(pod['devices']) == 1 else 'GPUs'} {numbers}" if numbers else ""
        later = "" if pod["cycle"] == 1 else ", as soon as the pods that make room have stopped"
        console.data(f"- a pod on {pod['node']}{devices}{later}")
    if plan["evictions"]:
        console.title("Pods that it would stop")
        for eviction in plan["evictions"]:
            target = f"moved to {eviction['movedTo']}" if eviction["movedTo"] else eviction["rule"]
            console.data(f"- {eviction['workload']} ({eviction['project']}) on {eviction['node']}: {target}")
            if console.is_verbose:
                console.data("  " + eviction["message"].replace("\n", "\n  "))
    if plan["timing"]:
        _show_delays(console, plan["timing"])
    if plan["queues"]:
        _show_queues(console, plan["queues"])
    for remark in plan["remarks"]:
        console.data(f"Note: {remark}")
    show_basis(console, plan)
    if plan.get("revision") is not None:
        console.say(f"Plan {plan['id']}. `--plan-id {plan['id']}` submits only while it holds.")


def _show_delays(console: Console, timing: Json) -> None:
    delays: list[Json] = timing["delays"]
    if not delays and not timing["hiddenDelays"]:
        return
    console.title("Workloads that it would delay")
    for delay in delays[:_SHOWN]:
        later = "later than could be computed" if delay["seconds"] is None else f"about {span(delay['seconds'])} later"
        verb = "starts again" if delay["isEvicted"] else "starts"
        console.data(f"- {delay['workload']} ({delay['project']}) {verb} {later}")
    more = len(delays) - len(delays[:_SHOWN])
    if more:
        console.data(f"… and {more} more; `-o json` has all.")
    if timing["hiddenDelays"]:
        console.data(f"- {timing['hiddenDelays']} of other projects")


def _show_queues(console: Console, queues: Sequence[Json]) -> None:
    resources = [("gpu", 0)] if any(queue["usedAfter"][0] for queue in queues) else [("cpu", 1), ("memory", 2)]
    for resource, place in resources:
        console.title(f"Quotas afterwards: {resource}")
        columns = (
            TableColumn("OWNER", lambda row: f"{row['type'].lower()} {row['name']}"),
            TableColumn("NODE POOL", lambda row: row["nodePool"]),
            TableColumn("QUOTA", _amount_of("quota", resource, place)),
            TableColumn("LIMIT", _amount_of("limit", resource, place)),
            TableColumn("USED", _amount_of("usedBefore", resource, place)),
            TableColumn("THEN", _amount_of("usedAfter", resource, place)),
        )
        for line in render_table(columns, queues, width=console.width(), headers=True, paint=console.paint):
            console.data(line)


def _amount_of(member: str, resource: str, place: int) -> Callable[[Json], str]:
    return lambda row: amount(row[member][place], resource)


def show_what_if(console: Console, answer: Json) -> None:
    """What changes would do to everybody."""
    for change in answer["changes"]:
        console.data(f"If: {change}")
    for title, concerned in (
        ("Would start", answer["starts"]),
        ("Would be evicted", answer["effects"]["evicted"]),
        ("Would be moved", answer["effects"]["moved"]),
        ("Would wait longer", answer["effects"]["delayed"]),
    ):
        if concerned.get("workloads") or concerned.get("hidden"):
            console.title(title)
            for ref in concerned.get("workloads", ()):
                gpus = f", {ref['gpus']:g} {'GPU' if ref['gpus'] == 1 else 'GPUs'}" if ref.get("gpus") else ""
                console.data(f"- {ref['workload']} ({ref['project']}{gpus})")
            if concerned.get("hidden"):
                console.data(f"- {concerned['hidden']} of other projects")
    if answer["shares"]:
        console.title("GPU shares")
        columns = (
            TableColumn("OWNER", lambda row: row["name"]),
            TableColumn("NODE POOL", lambda row: row["nodePool"]),
            TableColumn("FAIR SHARE", _amount_of("fairShareBefore", "gpu", 0)),
            TableColumn("THEN", _amount_of("fairShareAfter", "gpu", 0)),
            TableColumn("USED", _amount_of("usedBefore", "gpu", 0)),
            TableColumn("THEN", _amount_of("usedAfter", "gpu", 0)),
        )
        for line in render_table(columns, answer["shares"], width=console.width(), headers=True, paint=console.paint):
            console.data(line)
    if answer.get("estimates"):
        _show_starts(console, answer["estimates"])
    console.data("")
    console.data(f"Workloads that wait: {answer['waitingBefore']}, then {answer['waitingAfter']}.")
    show_basis(console, answer)


def _show_starts(console: Console, estimates: Json) -> None:
    """When waiting workloads start without and with the changes."""
    starts: list[Json] = estimates["starts"]
    columns = (
        TableColumn("WORKLOAD", lambda row: row["workload"], shrinks=True),
        TableColumn("PROJECT", lambda row: row["project"], shrinks=True),
        TableColumn("MEDIAN", lambda row: _shown_start(row["before"], "p50")),
        TableColumn("9 OF 10", lambda row: _shown_start(row["before"], "p90"), spare=True),
        TableColumn("THEN", lambda row: _shown_start(row["after"], "p50")),
        TableColumn("9 OF 10", lambda row: _shown_start(row["after"], "p90"), spare=True),
    )
    if starts:
        console.title("When they start")
    for line in render_table(columns, starts, width=console.width(), headers=bool(starts), paint=console.paint):
        console.data(line)
    for row in starts:
        if row["after"]["p50"] is None:
            console.data(f"{row['workload']}: {row['after']['message']}")
    if estimates["leftOut"]:
        console.data(f"Not estimated: {estimates['leftOut']} more waiting workloads.")
    if estimates["hidden"]:
        console.data(f"Not estimated: {estimates['hidden']} workloads of other projects.")


def _shown_start(start: Json, member: str) -> str:
    if start[member] is not None:
        return shown_moment(start[member])
    return "runs" if start["status"] == "running" else "-"


def show_estimate(console: Console, answer: Json) -> None:
    """When a workload starts."""
    console.data(f"{answer['workload']} ({answer['project']}): {answer['message']}")
    chain: list[Json] = answer["chain"]
    if chain:
        console.title("Before it")
        if len(chain) > _SHOWN:
            console.data(f"… {len(chain) - _SHOWN} earlier ends and starts; `-o json` has all.")
        for step in chain[-_SHOWN:]:
            name = step["workload"] or "a workload of another project"
            basis = _SHOWN_BASIS.get(step["basis"], step["basis"])
            remark = f" ({basis})" if step["event"] == "ends" else ""
            console.data(f"- {shown_moment(step['at'])}: {name} {step['event']}{remark}")
    show_basis(console, answer)


def shown_moment(seconds: float) -> str:
    """A time of a snapshot, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))
