"""Renders the reference page of the fields: what every property of every kind does on each engine, as the engines
declare it. `build_docs.py` puts it into the documentation.
"""

from collections.abc import Iterator

from fairlead.engines.declared import EFFECTS, EXCLUDE, Effect, find_on_cluster
from fairlead.formats.yaml.fields import MAP, yaml_fields
from fairlead.formats.yaml.keywords import PREEMPTIBILITY_LABEL, PRIORITY_LABEL
from fairlead.kinds import KINDS, role_members
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import Field, fields_of
from tests.field_proofs.clusters import find_cluster_proof
from tests.field_proofs.containers import find_contained
from tests.field_proofs.local import find_proof

INTRODUCTION = """Each property of a spec has its effect; or the workload says in its conditions (type `NotEnforced`)
that it has none here; or it fails before its start (type `NotProvided`). *Local, host* runs the process on the file
system of the machine itself; *local, container* runs the image. The last column names the tests that have seen it,
those of this machine first.
Fields of workload YAML stand at every property that they may set; `KEY` is the key of an item. What they mean, and
those that concern no property (`name`, `active`, `baseWorkload` …): [workload YAML](workload-yaml.md).
"""


def properties(struct: type, before: str = "") -> Iterator[tuple[str, Field]]:
    """Every property below a spec struct, by REST path, with `[]` behind lists."""
    for field in fields_of(struct):
        path = before + field.rest + ("[]" if field.is_list else "")
        yield path, field
        if field.struct is not None:
            yield from properties(field.struct, path + ".")


def render_flags(path: str, field: Field) -> str:
    """The flags of a property; those of a role have its name before theirs."""
    roles = (own for kind in KINDS.values() for own in fields_of(kind.spec) if path.startswith(f"{own.rest}."))
    word = next((f"{own.about.role}-" for own in roles if own.about.role), "")
    return ", ".join(f"`--{word}{flag.name.removeprefix('--')}`" for flag in field.about.flags)


def effect_of(path: str, field: Field) -> Effect | None:
    """What is declared of a property; an object's effect is that of its members."""
    if field.struct is not None:
        return Effect(unless="its members have the effect")
    return EXCLUDE if path.endswith(".exclude") else EFFECTS.get(without_role(path))


def without_role(path: str) -> str:
    """The path of a property in the spec of a role, as it is in a whole spec."""
    role, _, inner = path.partition(".")
    return inner if role in role_members() else path


def missing() -> list[str]:
    """Properties that no engine says anything about, and declarations of what no kind has."""
    known = {path: field for kind in KINDS.values() for path, field in properties(kind.spec)}
    silent = [path for path, field in known.items() if effect_of(path, field) is None]
    return silent + [path for path in EFFECTS if path not in known]


def render_page() -> str:
    lines = ["---", "hide: [toc]", "---", "# Fields and their effects", "", INTRODUCTION]
    for kind in KINDS.values():
        rows = list(properties(kind.spec))
        lines += [f"## {kind.title}", ""]
        lines += ["| REST | YAML | flag | local, host | local, container | Kubernetes | seen by |"]
        lines += ["|---|---|---|---|---|---|---|"]
        names = yaml_names(kind)
        lines += [render_row(path, field, names) for path, field in rows]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def yaml_names(kind: Kind) -> dict[str, list[str]]:
    """By REST path: the fields of workload YAML that may set it, for a kind that YAML has."""
    if not kind.letter:
        return {}
    labels = {"priorityClass": PRIORITY_LABEL, "preemptibility": PREEMPTIBILITY_LABEL}
    names = {path: [f"metadata.labels: {label}"] for path, label in labels.items()}
    for field in yaml_fields(kind).values():
        if kind.letter not in field.kinds:
            continue
        for path in (field.path, *field.sets):
            names.setdefault(path.removesuffix("[]"), []).append(field.name)
        for member in field.members:
            names.setdefault(f"{field.path}[].{member.path}", []).append(f"{field.name}.{member.name}")
        if field.key:
            names.setdefault(f"{field.path}[].{field.key}", []).append(f"{field.name} KEY")
        if field.form is MAP:
            names.setdefault(f"{field.path}[].value", []).append(field.name)
    return names


def render_row(path: str, field: Field, names: dict[str, list[str]]) -> str:
    effect = effect_of(path, field) or Effect()
    flags = render_flags(path, field)
    yaml = ", ".join(f"`{name}`" for name in names.get(path.removesuffix("[]"), ()))
    if field.struct is not None:
        cells = [effect.unless, "", ""]
    else:
        cells = [render_host(effect), render_container(path, effect), render_cluster(path, effect)]
    proofs = [] if field.struct is not None else [find_proof(path, effect.is_claimed), find_cluster_proof(path)]
    proof = ", ".join(dict.fromkeys(f"`{one.partition('::')[2]}`" for one in proofs if one))
    return f"| {' | '.join([f'`{path}`', yaml, flags, *cells, proof])} |"


def render_host(effect: Effect) -> str:
    if not effect.is_claimed:
        return f"not enforced: {effect.unless}"
    return f"{effect.host} ({effect.unless})" if effect.unless else effect.host


def render_container(path: str, effect: Effect) -> str:
    text = effect.container or render_host(effect)
    is_seen = effect.is_of_loop or find_contained(without_role(path))
    return text if is_seen or not (effect.is_claimed or effect.container) else f"{text}; no test has seen it there"


def render_cluster(path: str, effect: Effect) -> str:
    there = find_on_cluster(path)
    return f"not enforced: {there.unless}" if there.unless else there.words or effect.container or effect.host
