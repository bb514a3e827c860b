"""Writes the tables that the command line and the SDK read instead of the model: kinds, the flags of their specs,
what each field means, and the classes of their specs.

`python -m fairlead.cli.generate` writes them; they are not in the repository. The Makefile calls it when a declaration
has changed, and so does the build of a wheel. No command imports this.
"""

import json
import sys
from pathlib import Path

import msgspec

from fairlead import client
from fairlead.cli.files.explain import PREFIX
from fairlead.engines.declared import EFFECTS, EXCLUDE, Effect, find_on_cluster
from fairlead.formats.explain import FieldExplanation, explain_all
from fairlead.formats.flags.table import flag_table
from fairlead.formats.python_specs import render_specs
from fairlead.formats.yaml.keywords import API_VERSION
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, noun_of, outside_spec_names
from fairlead.model.spec.fields import fields_of

_FLAGS = Path(__file__).parent / "generated"
_KINDS = Path(client.__file__).parent / "kinds.json"
_SPECS = Path(client.__file__).parent / "specs.py"


def render_tables() -> dict[Path, str]:
    """Every generated file and what belongs into it."""
    kinds = [
        {
            "key": kind.key,
            "title": kind.title,
            "rest": kind.rest,
            "noun": noun_of(kind),
            "command": list(kind.command),
            "subtypes": [{"command": list(command), "sets": list(preset)} for command, preset in kind.subtypes],
            "canSuspend": kind.can_suspend,
            "canChange": [field.rest for field in fields_of(kind.changes)] if kind.changes else [],
            "outsideSpec": list(outside_spec_names(kind)),
            "commandMember": kind.command_member,
            "mirroredMembers": [list(pair) for pair in kind.mirrored_members],
        }
        for kind in KINDS.values()
    ]
    tables = {_KINDS: _render(kinds), _SPECS: render_specs(KINDS.values())}
    for kind in KINDS.values():
        tables[_FLAGS / f"{kind.key}.json"] = _render(flag_table(kind))
        tables[_FLAGS / f"{PREFIX}{kind.key}.json"] = _render_explanations(kind)
    return tables


def _render_explanations(kind: Kind) -> str:
    """One line for each field, so that changes are small; the names come first, to be read alone."""
    spellings = (kind.resource, f"{kind.resource}s", kind.key, kind.title, kind.rest, "".join(kind.command))
    names = list(dict.fromkeys(word.lower().replace("-", "") for word in spellings))
    roles = tuple(f"spec.{field.rest}." for field in fields_of(kind.spec) if field.about.role or field.rest == "leader")
    entries = [
        f"{json.dumps(path)}: {json.dumps(_entry(explanation, roles), ensure_ascii=False)}"
        for path, explanation in explain_all(kind).items()
    ]
    head = {"kind": kind.resource, "version": API_VERSION if kind.letter else "REST"}
    body = ",\n".join(entries)
    return f'{{"names": {json.dumps(names)},\n{json.dumps(head)[1:-1]}, "entries": {{\n{body}\n}}}}\n'


def _entry(explanation: FieldExplanation, roles: tuple[str, ...]) -> dict[str, object]:
    entry: dict[str, object] = msgspec.to_builtins(explanation)
    engines = [
        (path, _effect_json(effect, path)) for path in explanation.rest if (effect := _effect(path, roles)) is not None
    ]
    return entry | ({"engines": engines} if engines else {})


def _effect(path: str, roles: tuple[str, ...]) -> Effect | None:
    """What engines declare of a place in a request; pods of every role are alike."""
    role = next((role for role in roles if path.startswith(role)), "spec.")
    inner = path.removeprefix(role)
    return EXCLUDE if inner.endswith("[].exclude") else EFFECTS.get(inner)


def _effect_json(effect: Effect, path: str) -> dict[str, str]:
    host = f"not enforced: {effect.unless}"
    if effect.is_claimed:
        host = f"{effect.host} ({effect.unless})" if effect.unless else effect.host
    return {
        "local, host": host,
        "local, container": effect.container or host,
        "Kubernetes": _on_cluster(effect, path),
    }


def _on_cluster(effect: Effect, path: str) -> str:
    there = find_on_cluster(path.removeprefix("spec."))
    return f"not enforced: {there.unless}" if there.unless else there.words or effect.container or effect.host


def _render(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    tables = render_tables()
    for path, text in tables.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in set(_FLAGS.glob("*.json")) - set(tables):
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
