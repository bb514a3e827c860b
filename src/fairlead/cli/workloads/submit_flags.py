"""The flags of `submit`, and how they set members of a spec.

Used by `submit` and by `convert`, which converts command lines. It does not talk to a server.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence

from fairlead.cli.flags import OUTPUT, PROJECT, Flag, Parsed, UsageError
from fairlead.cli.workloads import additions
from fairlead.cli.workloads.notes import SUBMISSION_FLAGS
from fairlead.cli.workloads.spec_flags import apply_flags, as_flag, load_table
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry
from fairlead.formats.flags.entry import FlagEntry

EXPECTED_RUNTIME = Flag(
    "expected-runtime", "How long it is expected to run; others' estimated starts rest on it", "duration"
)
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
    apply_expected_runtime(values, spec.setdefault(kind.command_member, {}) if kind.command_member else spec)
    additions.apply_additions(values, spec.setdefault(kind.command_member, {}) if kind.command_member else spec)
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
        kept = [one for one in spec.get("annotations") or () if one.get("name") != _EXPECTED_RUNTIME]
        spec["annotations"] = [*kept, {"name": _EXPECTED_RUNTIME, "value": f"{seconds:g}"}]


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
    kept = {kind: items for kind, items in (spec[name].get("storage") or {}).items() if kind != "pvc"}
    spec[name] = {**spec[name], "storage": kept} if kept else {k: v for k, v in spec[name].items() if k != "storage"}


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
