"""What `submit` takes on its command line, and what that means for a spec.

Read by the command itself and by `convert`, which turns command lines into other dialects; it asks no server.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead.cli.flags import OUTPUT, PROJECT, Flag, Parsed, UsageError
from fairlead.cli.workloads.spec_flags import Entry, apply_flags, as_flag, load_table
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry

#: How the command goes about it; nothing of the workload.
MADE = (
    Flag("attach", "Show the output until the workload ends", "boolean"),
    Flag("pod-running-timeout", "With --attach: wait at most so long for a pod to start", "duration"),
    Flag("wait-for-submit", "How long the submission may take", "duration", default="1m"),
    Flag("dry-run", "Print what would be submitted, the template applied, and submit nothing", "boolean"),
    *OUTPUT,
)
#: Flags of the runai CLI that no property of a request stands for, and what to do instead.
NOT_CARRIED = {
    "privileged": "no request has such a property; name what it needs with --capability",
    "mnnvl": "no request has such a property; place pods close together with --required-pod-topology-key",
}
_OWN = (
    PROJECT,
    Flag("file", "Creation request as JSON; flags go over it; - reads standard input", short="f", placeholder="FILE"),
    Flag("name", "Name, if it is not given as a word", placeholder="NAME"),
    Flag("name-prefix", "Begin of the name; an increasing number is added", placeholder="TEXT"),
    Flag(
        "command", "The words after -- replace the image's entry point, instead of being its arguments", "boolean", "c"
    ),
    Flag("template", "Name or id of the template to start from", placeholder="NAME"),
    Flag("environment", "Environment to start from", placeholder="NAME"),
    Flag("compute", "Compute resource to start from", placeholder="NAME"),
    Flag("datasource", "Data source to mount", repeatable=True, placeholder="NAME"),
    Flag("exclude-node", "Node that it must not run on", repeatable=True, placeholder="NAME"),
    Flag("privileged", "Known from the runai CLI and refused: no request has such a property", "boolean"),
    Flag("mnnvl", "Known from the runai CLI and refused: no request has such a property", placeholder="MODE"),
    *MADE,
)


def submit_flags(kind: KindEntry) -> tuple[Flag, ...]:
    """Every flag of the kind's `submit`: its own, and one for each member of the spec that can be said."""
    table = load_table(kind.key)
    of_spec = tuple(as_flag(entry) for entry in table)
    known = {flag.name for flag in _OWN}
    roles = tuple(
        Flag(as_other(name, like), f"What no flag says of the {name} is as in the {like} (true)", "boolean")
        for name, like in kind.alike
        if like
    )
    roles += tuple(
        Flag(without_claims(role), f"The {role} mounts none of the claims", "boolean")
        for role in (role_of(table, name) for name, like in kind.alike if not like)
    )
    return (*_OWN, *roles, *(flag for flag in of_spec if flag.name not in known))


def fill_spec(spec: Json, kind: KindEntry, parsed: Parsed, add_assets: Callable[[Json], None] | None = None) -> None:
    """Put what a command line says into a spec, which may hold something already. `convert` reads commands with it."""
    values = parsed.values
    if kind.sets is not None:
        spec.setdefault(*kind.sets)
    known = frozenset(spec)
    table = load_table(kind.key)
    apply_flags(table, {name: value for name, value in values.items() if name != "command"}, spec)
    if parsed.trailing is not None:
        place = spec.setdefault(kind.words_in, {}) if kind.words_in else spec
        apply_words(parsed.trailing, bool(values.get("command")), place)
    if add_assets is not None:
        add_assets(spec.setdefault(kind.words_in, {}) if kind.words_in else spec)
    if values.get("exclude-node"):
        apply_excluded(values["exclude-node"], spec.setdefault(kind.words_in, {}) if kind.words_in else spec)
    refuse_unknown(values)
    for name, like in kind.alike:
        if not like and values.get(without_claims(role_of(table, name))):
            _drop_claims(spec, name, table)
        elif name not in known and values.get(as_other(name, like)) is not False:
            _make_alike(spec, name, like, table)


def refuse_unknown(values: Mapping[str, Any]) -> None:
    """Flags of the runai CLI with nothing behind them in the interface, said as such rather than not at all."""
    for name, why in NOT_CARRIED.items():
        if values.get(name) and str(values[name]).lower() not in ("none", "false"):
            raise UsageError(f"--{name} cannot be sent: {why}.")


def without_claims(role: str) -> str:
    """The flag by which a role that is as the whole mounts none of its claims: `master-no-pvcs`."""
    return f"{role}-no-pvcs"


def role_of(table: Sequence[Entry], name: str) -> str:
    """The word before the flags of a role: `master` for `masterSpec`."""
    first = next(str(entry["flag"]) for entry in table if entry["path"].startswith(f"{name}."))
    return first.removeprefix("--").partition("-")[0]


def _drop_claims(spec: Json, name: str, table: Sequence[Entry]) -> None:
    """Give a role of its own all that the whole has, and no claims."""
    spec.setdefault(name, {})
    _make_alike(spec, name, "", table)
    kept = {kind: items for kind, items in (spec[name].get("storage") or {}).items() if kind != "pvc"}
    spec[name] = {**spec[name], "storage": kept} if kept else {k: v for k, v in spec[name].items() if k != "storage"}


def as_other(name: str, like: str) -> str:
    """The flag that says whether one role is as another: `worker-as-leader`."""
    return f"{name}-as-{like}" if like else ""


def _make_alike(spec: Json, name: str, like: str, table: Sequence[Entry]) -> None:
    """What flags do not say of a role is as in the other one; a role like the whole is there only if they say some."""
    if like:
        if like in spec:
            spec[name] = {**spec[like], **spec.get(name, {})}
    elif name in spec:
        members = {entry["path"].split(".")[1] for entry in table if entry["path"].startswith(f"{name}.")}
        spec[name] = {**{member: value for member, value in spec.items() if member in members}, **spec[name]}


def apply_excluded(nodes: Sequence[str], spec: Json) -> None:
    """None of these nodes: a further expression of every term, since a term that matches is enough."""
    if nodes:
        names = [name for text in nodes for name in text.split(",")]
        terms = spec.setdefault("nodeAffinityRequired", {}).setdefault("nodeSelectorTerms", [])
        if not terms:
            terms.append({})
        for term in terms:
            excluded = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": names}
            term.setdefault("matchExpressions", []).append(excluded)


def apply_words(words: list[str] | None, is_command: bool, spec: Json) -> None:
    """The words after `--` are the image's arguments, or with --command the whole command. REST takes one text each."""
    if words is None:
        return
    if not words:
        raise UsageError("There is nothing after --.")
    if not is_command:
        spec["args"] = shlex.join(words)
        return
    spec["command"] = shlex.join(words[:1])
    spec.pop("args", None)
    if words[1:]:
        spec["args"] = shlex.join(words[1:])
