"""Documents for tests of workload YAML: a spec in, the whole document around it."""

from typing import Any

from fairlead.formats.yaml.documents import Manifest, YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml.tree import YamlIssue

HEAD = """apiVersion: run.ai/v2alpha1
kind: {kind}
metadata: {{name: x, namespace: runai-team-a}}
spec:
"""


def document(spec: str, kind: str = "TrainingWorkload") -> str:
    """The spec's lines begin at line 5."""
    return HEAD.format(kind=kind) + "".join(f"  {line}\n" for line in spec.strip().splitlines())


def manifest(spec: str, kind: str = "TrainingWorkload") -> Manifest:
    manifests, issues = read_manifests(document(spec, kind))
    assert issues == []
    return manifests[0]


def workload(spec: str, kind: str = "TrainingWorkload") -> YamlWorkload:
    """A document with name and image filled in where the spec has none."""
    given = {row.split(":")[0] for row in spec.splitlines()}
    if not given & {"name", "namePrefix"}:
        spec += "\nname: {value: x}"
    if "image" not in given:
        spec += "\nimage: {value: i}"
    found, issues = read_workload(manifest(spec, kind))
    assert [str(issue) for issue in issues] == []
    assert found is not None
    return found


def rest(spec: str, kind: str = "TrainingWorkload") -> dict[str, Any]:
    """What the spec is in REST, beside the image."""
    plain = dict(workload(spec, kind).plain)
    del plain["image"]
    return plain


def issues_of(text: str) -> list[YamlIssue]:
    """Everything that is wrong with a document, in the order of its lines."""
    manifests, issues = read_manifests(text, "f.yaml")
    for found in manifests:
        issues += read_workload(found)[1]
    return sorted(set(issues))
