"""Renders the reference page of workload YAML from the declarations of its fields. `build_docs.py` puts it into the
documentation.
"""

from fairlead.formats.explain import explain_all
from fairlead.formats.yaml.fields import LETTERS, yaml_fields
from fairlead.kinds import KINDS

INTRODUCTION = """---
hide: [toc]
---
# Workload YAML

Documents of `apiVersion: run.ai/v2alpha1`. `fairlead apply -f FILE` submits them, `fairlead explain KIND.spec.FIELD`
says the same as this page, `fairlead convert` turns them into requests, commands and Kubernetes objects.

- `metadata.namespace: runai-<project>` chooses the project; the labels `priorityClassName` and
  `kai.scheduler/preemptibility` its priority and preemptibility.
- A field is written `name: {value: X}`; a list `name: {items: {KEY: {value: {…}}}}`, where KEY is the item's name (a
  key of digits alone is none); a map `name: {items: {KEY: {value: X}}}`. `usage` and `baseWorkload` are plain texts.
- `usage: Template` keeps the document on the server: in a project's namespace as its template, in `runai` as all the
  projects'. `baseWorkload` names one, looked for in that order; what a document gives itself wins, items one by one by
  key.
- Names are read without regard to upper and lower case; numbers and booleans may be written as text.
- An environment variable from a secret is written `SECRET:name,key`.
- `fairlead describe NAME -o yaml` writes a workload in this form.
"""


def render_page() -> str:
    lines = [INTRODUCTION]
    for kind in KINDS.values():
        if not kind.letter:
            continue
        lines += [f"## {kind.resource}", ""]
        for older, letter in kind.older_resources:
            lines += [f"`kind: {older}` is read as this kind, with the fields of {LETTERS[letter]}.", ""]
        lines += ["| field | type | REST | flags | default | meaning |", "|---|---|---|---|---|---|"]
        known = explain_all(kind)
        for field in yaml_fields(kind).values():
            if kind.letter not in field.kinds:
                continue
            found = known[field.name]
            flags = ", ".join(f"`{flag}`" for one in found.flags for flag in one.split(", ") if flag.startswith("--"))
            rest = ", ".join(f"`{path.removeprefix('spec.')}`" for path in found.rest)
            cells = [f"`{field.name}`", found.type, rest, flags, found.default, found.description]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            for member in field.members:
                inner = known[f"{field.name}.{member.name}"]
                path = f"`….{inner.rest[0].partition('[].')[2]}`"
                cells = [f"`….{member.name}`", inner.type, path, "", inner.default, inner.description]
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
