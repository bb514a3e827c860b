"""The flags of `submit`, how they set members of a spec, and which flag sets a member that the server refuses.

Used by `submit` and by `convert`, which converts command lines. It does not talk to a server.
"""

import re
import shlex
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fairlead.cli.command import Invocation
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, Parsed, UsageError
from fairlead.cli.workloads import additions
from fairlead.cli.workloads.spec_flags import apply_flags, as_flag, load_table, name_of
from fairlead.client import ServerError
from fairlead.client.errors import Issue
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry
from fairlead.formats.flags.entry import FlagEntry

ALLOW_PENDING = Flag("allow-pending", "Submit even if no node is large enough; it waits for one", "boolean")
PLAN = Flag("plan", "Print where it would start and whom it would evict, and submit nothing", "boolean")
PLAN_ID = Flag("plan-id", "Submit only if this plan still holds", placeholder="ID")
#: Flags of every command that submits.
SUBMISSION_FLAGS = (ALLOW_PENDING, PLAN, PLAN_ID)
EXPECTED_RUNTIME = Flag("expected-runtime", "Expected running time; estimates of when others start use it", "duration")
#: The annotation that carries it through every format, in seconds.
_EXPECTED_RUNTIME = "fairlead/expected-runtime"
#: Flags for the command itself, not for the workload.
COMMAND_FLAGS = (
    Flag("attach", "Follow the output until the workload ends", "boolean"),
    Flag("pod-running-timeout", "With --attach: wait at most this long for a pod to start", "duration"),
    *SUBMISSION_FLAGS,
    Flag("wait-for-submit", "Time limit of the submission", "duration", default="1m"),
    Flag("dry-run", "Print the request with its template applied, and submit nothing", "boolean"),
    *OUTPUT,
)
#: Flags of the runai CLI that have no property in a request, and what to use instead.
UNSUPPORTED = {
    "privileged": "the API has no such property; add single capabilities with --capability",
    "mnnvl": "the API has no such property; place pods close together with --required-pod-topology-key",
}
_OWN = (
    PROJECT,
    Flag("file", "Creation request as JSON, overridden by flags; - is standard input", short="f", placeholder="FILE"),
    Flag("name", "Name of the workload, if it is not the first argument", placeholder="NAME"),
    Flag("name-prefix", "Prefix of the name; a number is added", placeholder="TEXT"),
    Flag("command", "Use the arguments after -- as the command, replacing the image's entrypoint", "boolean", "c"),
    Flag("template", "Template to start from, by name or id", placeholder="NAME"),
    Flag("environment", "Environment to start from", placeholder="NAME"),
    Flag("compute", "Compute resource to start from", placeholder="NAME"),
    Flag("datasource", "Data source to mount", repeatable=True, placeholder="NAME"),
    EXPECTED_RUNTIME,
    *additions.FLAGS,
    Flag("exclude-node", "Node to exclude", repeatable=True, placeholder="NAME"),
    Flag("privileged", "Not supported: the API has no such property", "boolean"),
    Flag("mnnvl", "Not supported: the API has no such property", placeholder="MODE"),
    *COMMAND_FLAGS,
)
#: Members outside the spec, and what sets them.
_OUTSIDE = {"projectId": "--project", "templateId": "--template"}
#: Advice of the server that helps only the author of a request.
_REST_ADVICE = " or send useGivenNameAsPrefix"
_POSITION = re.compile(r"\[\d+\]")
_PATH = re.compile(r"\bspec(?:\.\w+(?:\[\d+\])?)+")
#: Stands for a member that a flag sets without naming it.
_WHOLE = " "
#: A member in the text of a violation: REST names of several words are written together.
_MEMBER = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]*)+\b")


def submit_flags(kind: KindEntry) -> tuple[Flag, ...]:
    """All flags of the kind's `submit`: its own, and those that set members of the spec."""
    table = load_table(kind.key)
    of_spec = tuple(as_flag(entry) for entry in table)
    known = {flag.name for flag in _OWN}
    roles = tuple(
        Flag(
            as_other(name, like),
            f"Copy the settings of the {like} to the {name} if no flag sets them (default true)",
            "boolean",
        )
        for name, like in kind.mirrored_members
        if like
    )
    roles += tuple(
        Flag(without_claims(role), f"Mount no persistent volume claims in the {role}", "boolean")
        for role in (role_of(table, name) for name, like in kind.mirrored_members if not like)
    )
    return (*_OWN, *roles, *(flag for flag in of_spec if flag.name not in known))


def fill_spec(spec: Json, kind: KindEntry, parsed: Parsed, add_assets: Callable[[Json], None] | None = None) -> None:
    """Set the members that a command line gives in a spec, which may have content already."""
    values = parsed.values
    if kind.sets is not None:
        spec.setdefault(*kind.sets)
    known = frozenset(spec)
    table = load_table(kind.key)
    apply_flags(table, {name: value for name, value in values.items() if name != "command"}, spec)
    if parsed.trailing is not None:
        place = spec.setdefault(kind.command_member, {}) if kind.command_member else spec
        apply_arguments(parsed.trailing, bool(values.get("command")), place)
    if add_assets is not None:
        add_assets(spec.setdefault(kind.command_member, {}) if kind.command_member else spec)
    if values.get("exclude-node"):
        apply_excluded(
            values["exclude-node"], spec.setdefault(kind.command_member, {}) if kind.command_member else spec
        )
    main = spec.get(kind.command_member, {}) if kind.command_member else spec
    apply_expected_runtime(values, main)
    additions.apply_additions(values, main)
    if kind.command_member and main:
        spec[kind.command_member] = main
    refuse_unsupported(values)
    for name, like in kind.mirrored_members:
        if not like and values.get(without_claims(role_of(table, name))):
            _drop_claims(spec, name, table)
        elif name not in known and values.get(as_other(name, like)) is not False:
            _make_alike(spec, name, like, table)


def apply_expected_runtime(values: Mapping[str, object], spec: Json) -> None:
    """Declare the running time as an annotation."""
    seconds = values.get(EXPECTED_RUNTIME.name)
    if isinstance(seconds, int | float):
        if seconds <= 0:
            raise UsageError("--expected-runtime must be above 0.")
        annotations = [one for one in spec.get("annotations") or () if one.get("name") != _EXPECTED_RUNTIME]
        spec["annotations"] = [*annotations, {"name": _EXPECTED_RUNTIME, "value": f"{seconds:g}"}]


def refuse_unsupported(values: Mapping[str, object]) -> None:
    """Refuse flags of the runai CLI that the API has no property for."""
    for name, why in UNSUPPORTED.items():
        if values.get(name) and str(values[name]).lower() not in ("none", "false"):
            raise UsageError(f"--{name} is not supported: {why}.")


def without_claims(role: str) -> str:
    """The flag for a role that copies the shared spec but none of its claims: `master-no-pvcs`."""
    return f"{role}-no-pvcs"


def role_of(table: Sequence[FlagEntry], name: str) -> str:
    """The prefix of the flags of a role: `master` for `masterSpec`."""
    first = next(str(entry["flag"]) for entry in table if entry["path"].startswith(f"{name}."))
    return first.removeprefix("--").partition("-")[0]


def _drop_claims(spec: Json, name: str, table: Sequence[FlagEntry]) -> None:
    """Give a role a copy of the shared spec without its claims."""
    spec.setdefault(name, {})
    _make_alike(spec, name, "", table)
    volumes = {kind: items for kind, items in (spec[name].get("storage") or {}).items() if kind != "pvc"}
    spec[name] = (
        {**spec[name], "storage": volumes} if volumes else {k: v for k, v in spec[name].items() if k != "storage"}
    )


def as_other(name: str, like: str) -> str:
    """The flag that makes one role a copy of another: `worker-as-leader`."""
    return f"{name}-as-{like}" if like else ""


def _make_alike(spec: Json, name: str, like: str, table: Sequence[FlagEntry]) -> None:
    """Copy what flags do not set from the other role; a copy of the shared spec needs a flag that sets something."""
    if like:
        if like in spec:
            spec[name] = {**spec[like], **spec.get(name, {})}
    elif name in spec:
        members = {entry["path"].split(".")[1] for entry in table if entry["path"].startswith(f"{name}.")}
        spec[name] = {**{member: value for member, value in spec.items() if member in members}, **spec[name]}


def apply_excluded(nodes: Sequence[str], spec: Json) -> None:
    """Exclude these nodes: add an expression to every term, because one matching term is enough."""
    if nodes:
        names = [name for text in nodes for name in text.split(",")]
        terms = spec.setdefault("nodeAffinityRequired", {}).setdefault("nodeSelectorTerms", [])
        if not terms:
            terms.append({})
        for term in terms:
            excluded = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": names}
            term.setdefault("matchExpressions", []).append(excluded)


def apply_arguments(arguments: list[str] | None, is_command: bool, spec: Json) -> None:
    """The arguments after `--` are the image's arguments, or with --command the command. REST takes one text each."""
    if arguments is None:
        return
    if not arguments:
        raise UsageError("There is no argument after --.")
    if not is_command:
        spec["args"] = shlex.join(arguments)
        return
    spec["command"] = shlex.join(arguments[:1])
    spec.pop("args", None)
    if arguments[1:]:
        spec["args"] = shlex.join(arguments[1:])


# Errors in the words of the command line


@contextmanager
def flags_in_errors(kind: str, invocation: Invocation) -> Iterator[None]:
    """Errors of the server that are raised inside name the flags of the kind."""
    try:
        yield
    except ServerError as error:
        raise name_flags(error, load_table(kind), invocation.parsed.typed()) from error


def name_flags(error: ServerError, table: Sequence[FlagEntry], given: Container[str]) -> ServerError:
    """The same error, with flags instead of members; `given` are the flags that were used."""

    def shown(path: str) -> str:
        if path == "name":
            return next((f"--{flag}" for flag in ("name", "name-prefix") if flag in given), path)
        return _OUTSIDE.get(path) or _find(table, given, _clean(path)) or path

    def with_flags_in_details(issue: Issue) -> str:
        parent = _clean(issue.field).rpartition(".")[0]
        own = shown(issue.field).partition(" ")[0]

        def replaced(match: re.Match[str]) -> str:
            flag = _find_nearest(table, given, parent, match[0])
            # Another part of the same flag needs only its name.
            return flag.removeprefix(f"{own} ") if flag else match[0]

        return _MEMBER.sub(replaced, issue.details.replace(_REST_ADVICE, ""))

    def named(issue: Issue) -> Issue:
        annotation, _, rest = issue.details.partition(": ")
        flag = additions.FLAG_OF_ANNOTATION.get(annotation, "")
        if flag in given:
            return Issue(f"--{flag}", rest, issue.rule)
        return Issue(shown(issue.field), with_flags_in_details(issue), issue.rule)

    issues = tuple(named(issue) for issue in error.issues)
    details = _PATH.sub(lambda match: shown(match[0]), error.details)
    return ServerError(error.status, error.message, details, issues)


def _clean(path: str) -> str:
    return _POSITION.sub("", path.removeprefix("spec."))


def _find_nearest(table: Sequence[FlagEntry], given: Container[str], parent: str, member: str) -> str:
    """The flag that sets exactly this member of the object around, or of the next one around that has it."""
    while True:
        flag = _find(table, given, f"{parent}.{member}" if parent else member, is_exact=True)
        if flag or not parent:
            return flag
        parent = parent.rpartition(".")[0]


def _find(table: Sequence[FlagEntry], given: Container[str], path: str, is_exact: bool = False) -> str:
    """The flag that sets a member, with the part of its value if it has parts; empty if there is none."""
    known = []
    for entry in table:
        inner = path[len(entry["path"]) :]
        if path.startswith(entry["path"]) and inner[:1] in ("", "."):
            part = _part(entry, inner[1:])
            if part or not inner or not is_exact:
                known.append(
                    (_used(entry, given) != "", part != "", len(entry["path"]), "constant" not in entry, entry, part)
                )
    if not known:
        return ""
    # The flag that was used, then the one that has such a part, then the one for the innermost object.
    *_, entry, part = max(known, key=lambda one: one[:4])
    if entry["form"] == "words":
        return "the words after --"
    return f"--{_used(entry, given) or name_of(entry)}{part if part != _WHOLE else ''}"


def _part(entry: FlagEntry, inner: str) -> str:
    """How a member of an item is given with the flag: the name of its part, or the flag as a whole."""
    if entry.get("preset", {}).get(inner) or inner in entry.get("pair", ()):
        return _WHOLE
    inner = inner.removeprefix(f"{entry.get('wrap', '')}.")
    return next((f" {part['name']}" for part in entry.get("parts", ()) if part["path"] == inner), "")


def _used(entry: FlagEntry, given: Container[str]) -> str:
    """The name by which the flag was used; `run` has flags of its own that are aliases elsewhere."""
    names = (name_of(entry), *(alias.removeprefix("--") for alias in entry.get("aliases", ())))
    return next((name for name in names if name in given), "")
