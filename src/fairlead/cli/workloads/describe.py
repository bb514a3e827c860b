"""The page of one workload: state, compute, addresses, pods, events."""

from collections.abc import Sequence

from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.times import shown_time, span
from fairlead.cli.workloads.additions import describe_additions
from fairlead.client.json_object import Json


def describe(session: ServerSession, workload: Json) -> None:
    """Print the requested parts of the page."""
    get = session.invocation.get
    if get("general", True):
        _facts(session, "", _general(workload) + describe_additions(_annotations(session, workload)))
        for message in workload.get("pendingSchedulingMessages") or ():
            session.console.data(f"  {message['nodePool']}: {message.get('userMessage') or message['reason']}")
        _conditions(session, workload.get("conditions") or ())
        _evictions(session, workload)
        _caller_environment(session, workload["id"])
    if get("compute", True):
        _facts(session, "Compute", _compute(workload))
    if get("networks", True) and workload.get("urls"):
        _facts(session, "Networks", [("URL", url) for url in workload["urls"]])
    if get("pods", True):
        _pods(session, workload["id"])
    if get("events", True):
        _events(session, workload["id"])


def _general(workload: Json) -> list[tuple[str, str]]:
    requested = workload.get("requestedPods") or {}
    return [
        ("Name", workload["name"]),
        ("Id", workload["id"]),
        ("Type", workload["type"]),
        ("Project", workload["projectName"]),
        ("Status", workload["phase"]),
        ("Message", workload.get("phaseMessage") or ""),
        ("Priority", workload.get("priorityClassName") or ""),
        ("Node pools", ", ".join(workload.get("currentNodePools") or workload.get("requestedNodePools") or ())),
        ("Image", ", ".join(workload.get("images") or ())),
        ("Command", workload.get("command") or ""),
        ("Arguments", workload.get("arguments") or ""),
        ("Pods running", f"{workload.get('runningPods', 0)} of {requested.get('number', '?')}"),
        ("Completions", str(requested.get("completions") or "")),
        ("Submitted by", workload.get("submittedBy") or ""),
        ("Created", shown_time(workload.get("createdAt"))),
        ("Completed", shown_time(workload.get("completedAt"))),
        ("Deleted", shown_time(workload.get("deletedAt"))),
        ("Waited", span(workload.get("totalPendingTimeSeconds"))),
        ("Ran", span(workload.get("totalRunningTimeSeconds"))),
    ]


def _annotations(session: ServerSession, workload: Json) -> list[Json]:
    """The annotations of its spec, which lists do not have."""
    return [] if workload.get("deletedAt") else session.main_spec(workload).get("annotations") or []


def _evictions(session: ServerSession, workload: Json) -> None:
    """A line about evictions of its pods, if there were any."""
    if not workload.get("preemptible", True):
        return
    explanation = session.client.explanation(workload["id"], waiting=False)
    last = explanation.get("lastEviction")
    if last:
        times = "once" if explanation["preemptions"] == 1 else f"{explanation['preemptions']} times"
        session.console.data(f"Evicted {times}, last at {shown_time(last['at'])}: {last['message']}")


def _caller_environment(session: ServerSession, workload_id: str) -> None:
    """The names of the variables that it took over from its caller, if it did; nobody is shown their values."""
    environment = session.client.caller_environment(workload_id)
    if environment is None:
        return
    if environment["names"]:
        session.console.data(f"Variables of its caller: {', '.join(environment['names'])}")
    if environment["inputBytes"]:
        session.console.data(f"Standard input: {environment['inputBytes']} bytes")


def _compute(workload: Json) -> list[tuple[str, str]]:
    requested = workload.get("podsRequestedResources") or workload.get("workloadRequestedResources") or {}
    allocated = workload.get("allocatedResources") or {}
    titles = {"gpu": "GPU devices", "gpuMemory": "GPU memory", "cpu": "CPU cores", "cpuMemory": "CPU memory"}
    facts = []
    for key, title in titles.items():
        value = requested.get(key) or {}
        shown = _size if key.endswith("Memory") else _amount
        amounts = [f"{name} {shown(value[name])}" for name in ("request", "limit") if _amount(value.get(name))]
        if _amount(allocated.get(key)):
            amounts.append(f"allocated {shown(allocated[key])}")
        facts.append((title, ", ".join(amounts)))
    extended = [(item["resource"], str(item["quantity"])) for item in requested.get("extendedResources") or ()]
    return facts + extended


def _amount(value: object) -> str:
    """A number or a quantity; blank for zero and null."""
    text = f"{value:g}" if isinstance(value, int | float) else str(value or "")
    return "" if text == "0" else text


def _size(value: object) -> str:
    """Bytes in the largest unit that gives a whole number; other quantities unchanged."""
    text = _amount(value)
    if not text.isdecimal():
        return text
    number = int(text)
    units = [(1024**power, f"{letter}i") for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K"))]
    units += [(1000**power, letter) for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "k"))]
    size, unit = min(
        (pair for pair in units if number % pair[0] == 0), key=lambda pair: number // pair[0], default=(1, "")
    )
    return f"{number // size}{unit}"


def _facts(session: ServerSession, title: str, facts: Sequence[tuple[str, str]]) -> None:
    shown = [(name, text) for name, text in facts if text]
    if not shown:
        return
    if title:
        session.console.title(title)
    label_width = max(len(name) for name, _ in shown) + 1
    for name, text in shown:
        session.console.data(f"{name + ':':<{label_width}}  {text}")


def _conditions(session: ServerSession, conditions: Sequence[Json]) -> None:
    for condition in conditions:
        if condition.get("message"):
            about = f" ({condition['reason']})" if condition.get("reason") else ""
            session.console.data(f"{condition['type']}{about}: {condition['message']}")


def _started(pod: Json) -> str | None:
    return next((one["startedAt"] for one in pod.get("containers") or () if one.get("startedAt")), None)


def _pods(session: ServerSession, workload_id: str) -> None:
    pods = session.client.pods(workload_id)
    limit = session.invocation.get("pod-limit", 10)
    columns = [
        TableColumn("POD", lambda row: row["name"], shrinks=True),
        TableColumn("STATUS", lambda row: row.get("k8sPhase") or ""),
        TableColumn("NODE", lambda row: row.get("nodeName") or "", shrinks=True),
        TableColumn("STARTED", lambda row: shown_time(_started(row))),
        TableColumn("ENDED", lambda row: shown_time(row.get("completedAt")), spare=True),
        TableColumn("EXIT", lambda row: "" if row.get("exitCode") is None else str(row["exitCode"])),
        TableColumn("RESTARTS", lambda row: str(row.get("restarts") or 0)),
    ]
    if session.invocation.get("containers"):
        columns.append(
            TableColumn("CONTAINERS", lambda row: ",".join(one["name"] for one in row.get("containers") or ()))
        )
    _rows(session, "Pods", columns, pods if limit < 0 else pods[:limit], len(pods))


def _events(session: ServerSession, workload_id: str) -> None:
    limit = session.invocation.get("event-limit", 50)
    order = session.invocation.get("sortEvents", "asc")
    # The limit keeps the newest events, whatever order they are shown in.
    events = session.client.events(workload_id, sortOrder="desc", limit=limit if 0 < limit <= 500 else 500)
    if order == "asc":
        events.reverse()
    columns = [
        TableColumn("TIME", lambda row: shown_time(row.get("createdAt"))),
        TableColumn("TYPE", lambda row: row.get("type") or "", spare=True),
        TableColumn("REASON", lambda row: row.get("reason") or ""),
        TableColumn("ABOUT", lambda row: (row.get("involvedObject") or {}).get("name") or "", shrinks=True, spare=True),
        TableColumn("MESSAGE", lambda row: row.get("message") or "", shrinks=True, narrowest=40),
    ]
    if limit:
        _rows(session, "Events", columns, events, len(events))


def _rows(session: ServerSession, title: str, columns: Sequence[TableColumn], rows: Sequence[Json], count: int) -> None:
    if not rows:
        return
    session.console.title(title)
    console = session.console
    headers = not session.invocation.get("no-headers")
    for line in render_table(columns, rows, width=console.width(), headers=headers, paint=console.paint):
        console.data(line)
    if len(rows) < count:
        console.say(f"{len(rows)} of {count} pods shown; --pod-limit -1 shows all.")
