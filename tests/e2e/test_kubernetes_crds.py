"""The generated custom resource definitions on a real kube-apiserver, asked with a real kubectl.

Part of `make test-kubernetes`, which builds the server first.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import UNSET

from deploy.cluster import build, cluster
from fairlead.formats.crd import render_crd
from fairlead.formats.legacy_policies import LEGACY_KINDS
from fairlead.formats.policy_crd import policy_plural
from fairlead.formats.yaml.fields import yaml_fields
from fairlead.formats.yaml.text import render_yaml
from fairlead.formats.yaml.write import render_document
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from tests.unit.formats.yaml_rows import ROWS, spec_of, written
from tests.unit.formats.yaml_texts import document

ROOT = Path(__file__).parents[2]
KIND = KINDS["training"]
EVERY = json.loads((ROOT / "tests/golden/training/every-field.request.json").read_text())["spec"]
SNIPPETS = sorted((ROOT / "tests/golden/yaml/reference").glob("*.yaml"))
WITH_YAML = [kind for kind in KINDS.values() if kind.letter]
#: One of every kind's own fields, as `fairlead convert` writes it.
OWN: dict[str, dict[str, Any]] = {
    "distributed-training": {
        "image": "i",
        "distributedFramework": "MPI",
        "numWorkers": 2,
        "slotsPerWorker": 4,
        "cleanPodPolicy": "All",
        "sshAuthMountPath": "/keys",
        "masterSpecSameAsWorker": False,
        "preemptibility": "non-preemptible",
    },
    "inference-service": {
        "image": "i",
        "servingPort": {"container": 8000, "protocol": "grpc", "clusterLocalAccessOnly": True},
        "autoscaling": {"minReplicas": 1, "maxReplicas": 3, "metric": "throughput", "metricThreshold": 5},
        "tty": True,
        "stdin": True,
    },
    "workspace": {"image": "i", "exposedUrls": [{"name": "u", "container": 8888, "toolType": "jupyter-notebook"}]},
}
#: The rest of those fields, as people write them.
BY_HAND: dict[str, dict[str, Any]] = {
    "InteractiveWorkload": {
        "jupyter": {"value": True},
        "notebookToken": {"value": "t"},
        "tensorboard": {"value": True},
        "tensorboardLogdir": {"value": "/l"},
        "preemptible": {"value": True},
    },
    "DistributedWorkload": {
        "image": {"value": "i"},
        "jobType": {"value": "PyTorchJob"},
        "pyTorchJob": {"value": {"elasticPolicy": {"minReplicas": 1}}},
        "runPolicy": {"value": {"backoffLimit": 2}},
        "nonPreemptible": {"value": False},
    },
    "InferenceWorkload": {
        "image": {"value": "i"},
        "metric": {"value": "custom"},
        "metricName": {"value": "m"},
        "class": {"value": "kpa"},
    },
    "TrainingWorkload": {"image": {"value": "i"}, "mpi": {"value": True}, "processes": {"value": 4}},
}
#: By the words of a rule: objects that break it.
BROKEN: dict[str, list[dict[str, Any]]] = {
    "exactly one of name and namePrefix is required": [
        {"image": {"value": "i"}},
        {"name": {"value": "a"}, "namePrefix": {"value": "b"}, "image": {"value": "i"}},
    ],
    "image is required, here or in the baseWorkload": [{"name": {"value": "a"}}],
    "cpuLimit is below cpu": [{"cpu": {"value": "2"}, "cpuLimit": {"value": 1}}],
    "memoryLimit is below memory": [{"memory": {"value": "2G"}, "memoryLimit": {"value": "1G"}}],
    "gpuMemoryLimit is below gpuMemory": [{"gpuMemory": {"value": "2G"}, "gpuMemoryLimit": {"value": "1M"}}],
    "gpuLimit is below gpu": [{"gpu": {"value": "0.5"}, "gpuLimit": {"value": "0.2"}}],
    "parallelism is above completions": [
        {"parallelism": {"value": 2}},
        {"parallelism": {"value": 3}, "completions": {"value": 2}},
    ],
    "gpu and gpuMemory both request a fraction of a device; use one of them": [
        {"gpu": {"value": "0.5"}, "gpuMemory": {"value": "1G"}}
    ],
    "podAffinitySchedulingRule has an effect only with podAffinity": [{"podAffinitySchedulingRule": {"value": "hard"}}],
    "podAffinityTopology has an effect only with podAffinity": [
        {"podAffinityTopology": {"value": "z"}},
        {"podAffinityTopology": {"value": "z"}, "podAffinity": {"value": False}},
    ],
    "minScale is above maxScale": [{"minScale": {"value": 3}, "maxScale": {"value": 2}}],
    "metricName has an effect only with the metric custom": [{"metricName": {"value": "m"}}],
    "tty needs stdin": [{"tty": {"value": True}}],
}
RULES = [
    (kind, rule["message"])
    for kind in WITH_YAML
    for rule in render_crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "x-kubernetes-validations"
    ]
]
#: What is near to breaking a rule, and keeps it.
KEPT: list[tuple[Kind, dict[str, Any]]] = [
    (KINDS["workspace"], {"jupyter": {"value": True}}),
    (KIND, {"cpu": {"value": "500m"}, "cpuLimit": {"value": "0.5"}}),
    (KIND, {"gpu": {"value": "0.5"}, "gpuLimit": {"value": "20M"}}),
    (KIND, {"gpu": {"value": "0.5"}, "gpuLimit": {"value": 1}}),
    (KIND, {"parallelism": {"value": 2}, "completions": {"value": 2}}),
    (KIND, {"parallelism": {"value": 2}, "baseWorkload": "base"}),
]
NAMED = {"name": {"value": "a"}, "image": {"value": "i"}}
Kubectl = Callable[..., subprocess.CompletedProcess[str]]
HEAD = {"apiVersion": "run.ai/v2alpha1", "kind": KIND.resource}


pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("crds") / "cluster"
    cluster.up(folder, "api")

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [
            build.kubectl(),
            f"--kubeconfig={folder / 'kubeconfig'}",
            f"--cache-dir={folder / 'cache'}",
            *arguments,
        ]
        return subprocess.run(command, input=stdin, capture_output=True, text=True)

    try:
        made = run("apply", "-f", str(ROOT / "deploy" / "crds"))
        assert made.returncode == 0, made.stderr
        waited = run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        assert waited.returncode == 0, waited.stderr
        assert run("create", "namespace", "runai-team-a").returncode == 0
        yield run
    finally:
        cluster.down(folder)


@pytest.mark.parametrize("kind", WITH_YAML, ids=lambda kind: kind.resource)
def test_definitions_have_no_trouble(kubectl: Kubectl, kind: Kind) -> None:
    decoded = json.loads(kubectl("get", "crd", render_crd(kind)["metadata"]["name"], "-o", "json").stdout)
    conditions = {one["type"]: one["status"] for one in decoded["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_snippets_apply(kubectl: Kubectl, path: Path) -> None:
    made = kubectl("apply", "--validate=strict", "-f", str(path))
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("key", OWN)
def test_what_convert_writes_of_other_kinds_applies(kubectl: Kubectl, key: str) -> None:
    document, losses = render_document(KINDS[key], OWN[key], key, project="team-a")
    assert not [loss for loss in losses if loss.now is UNSET]
    made = kubectl("apply", "--validate=strict", "-f", "-", stdin=render_yaml(document))
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("resource", BY_HAND)
def test_what_people_write_of_a_kinds_own_applies(kubectl: Kubectl, resource: str) -> None:
    metadata = {"name": f"by-hand-{resource.lower()}", "namespace": "runai-team-a"}
    spec = {"name": {"value": "by-hand"}, **BY_HAND[resource]}
    body = {"apiVersion": HEAD["apiVersion"], "kind": resource, "metadata": metadata, "spec": spec}
    made = kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr


OLDER_POLICY: dict[str, Any] = {
    "cpu": {"value": "0.5", "rules": {"required": True, "min": "0.1", "max": 8}},
    "image": {"rules": {"options": [{"value": "a", "displayed": "A"}, "b"]}},
    "environment": {
        "items": {"TEAM": {"value": "a", "rules": {"canRemove": False}}},
        "rules": {"canAdd": False},
    },
    "volumes": {
        "items": {"DEFAULTS": {"value": {"readOnly": True}}},
        "itemRules": {"path": {"options": [{"value": "/data"}]}},
    },
}


@pytest.mark.parametrize("name", LEGACY_KINDS)
def test_policies_in_the_older_form_apply_and_unknown_fields_do_not(kubectl: Kubectl, name: str) -> None:
    metadata = {"name": "old", "namespace": "runai-team-a"}
    body = {**HEAD, "kind": name, "metadata": metadata, "spec": OLDER_POLICY}
    made = kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr
    stored = json.loads(kubectl("get", policy_plural(name), "old", "-n", "runai-team-a", "-o", "json").stdout)
    assert stored["spec"] == OLDER_POLICY
    wrong = {**body, "spec": {"imagge": {"value": "a"}}}
    refused = kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(wrong))
    assert "unknown field" in refused.stderr


def given(kind: Kind, spec: dict[str, Any], name: str = "refused") -> str:
    metadata = {"name": name, "namespace": "runai-team-a"}
    return json.dumps({**HEAD, "kind": kind.resource, "metadata": metadata, "spec": spec})


@pytest.mark.parametrize(("kind", "message"), RULES, ids=[f"{kind.resource} {message}" for kind, message in RULES])
def test_every_rule_refuses_something(kubectl: Kubectl, kind: Kind, message: str) -> None:
    for broken in BROKEN[message]:
        named = {} if {"name", "image"} & set(broken) else NAMED
        made = kubectl("create", "--validate=strict", "-f", "-", stdin=given(kind, {**named, **broken}))
        assert made.returncode != 0, broken
        assert message in made.stderr, made.stderr


@pytest.mark.parametrize(("kind", "spec"), KEPT, ids=[f"{kind.resource} {' '.join(spec)}" for kind, spec in KEPT])
def test_rules_let_pass_what_keeps_them(kubectl: Kubectl, kind: Kind, spec: dict[str, Any]) -> None:
    named = {"name": {"value": "a"}} if "jupyter" in spec else NAMED
    words = ("create", "--validate=strict", "--dry-run=server", "-f", "-")
    made = kubectl(*words, stdin=given(kind, {**named, **spec}, "kept"))
    assert made.returncode == 0, made.stderr


def test_another_kinds_field_is_refused(kubectl: Kubectl) -> None:
    spec = {**NAMED, "jupyter": {"value": True}}
    made = kubectl("create", "--validate=strict", "-f", "-", stdin=given(KINDS["inference-service"], spec))
    assert made.returncode != 0
    assert "unknown field" in made.stderr


def samples(kind: Kind) -> list[tuple[str, dict[str, Any]]]:
    """A document for each field that the kind has, as the tests of the reader write it."""
    found = []
    for row in ROWS:
        if kind.letter in row.kinds + row.also:
            text = document(spec_of(row, written(row)), kind.resource)
            plain = yaml.safe_load(text)
            # Snippets have the plain names.
            plain["metadata"]["name"] = f"field-{row.name.lower()}"
            found.append((row.name, quoted(plain)))
    return found


def quoted(plain: Any) -> Any:
    """Numbers with a fraction as text, as Kubernetes takes quantities."""
    if isinstance(plain, dict):
        return {name: quoted(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [quoted(value) for value in plain]
    return str(plain) if isinstance(plain, float) else plain


@pytest.mark.parametrize("kind", WITH_YAML, ids=lambda kind: kind.resource)
def test_every_field_of_the_documents_applies(kubectl: Kubectl, kind: Kind) -> None:
    bodies = [body for _, body in samples(kind)]
    words = ("create", "--validate=strict", "--dry-run=server", "-f", "-")
    made = kubectl(*words, stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}))
    assert made.returncode == 0, made.stderr
    assert len(made.stdout.splitlines()) == len(bodies)


def test_every_field_in_canonical_form_applies(kubectl: Kubectl) -> None:
    document, _ = render_document(KIND, EVERY, "every", project="team-a")
    made = kubectl("apply", "--validate=strict", "-f", "-", stdin=render_yaml(document))
    assert made.returncode == 0, made.stderr
    listed = kubectl("get", "twl", "-n", "runai-team-a")
    assert "every" in listed.stdout
    stored = json.loads(kubectl("get", "twl", "every", "-n", "runai-team-a", "-o", "json").stdout)
    assert stored["spec"] == document["spec"], "what was sent is stored as it is, without defaults"


@pytest.mark.parametrize(
    ("spec", "want_words"),
    [
        pytest.param({"imagePullPolicy": {"value": "Sometimes"}}, "Unsupported value", id="enum"),
        pytest.param({"cpu": {"value": "many"}}, "cpu.value", id="pattern"),
        pytest.param({"cpu": {"vlaue": 1}}, "vlaue", id="wrapper misspelt"),
        pytest.param({"cpu": 1}, "cpu", id="wrapper forgotten"),
        pytest.param({"comand": {"value": "x"}}, "unknown field", id="field misspelt"),
    ],
)
def test_refusals_of_the_schema(kubectl: Kubectl, spec: dict[str, Any], want_words: str) -> None:
    made = kubectl("create", "--validate=strict", "-f", "-", stdin=given(KIND, {**NAMED, **spec}))
    assert made.returncode != 0
    assert want_words in made.stderr


def test_templates_need_neither_name_nor_image(kubectl: Kubectl) -> None:
    spec = {"usage": "Template", "cpu": {"value": 1}}
    body = {**HEAD, "metadata": {"name": "template", "namespace": "runai-team-a"}, "spec": spec}
    made = kubectl("create", "--validate=strict", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("kind", WITH_YAML, ids=lambda kind: kind.resource)
def test_explain_describes_every_field(kubectl: Kubectl, kind: Kind) -> None:
    told = explained(kubectl("explain", f"{kind.resource.lower()}.spec").stdout)
    fields = {name: field.about.text for name, field in yaml_fields(kind).items() if kind.letter in field.kinds}
    assert fields
    assert {name: text for name, text in fields.items() if text not in told.get(name, "")} == {}


def explained(text: str) -> dict[str, str]:
    """By field: its description, on one line."""
    found: dict[str, str] = {}
    name = ""
    for line in text.partition("FIELDS:")[2].splitlines():
        if "\t<" in line:
            name = line.partition("\t")[0].strip()
        else:
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


@pytest.mark.parametrize("kind", WITH_YAML, ids=lambda kind: kind.resource)
def test_explain_of_one_field(kubectl: Kubectl, kind: Kind) -> None:
    text = " ".join(kubectl("explain", f"{kind.resource.lower()}.spec.cpu").stdout.split())
    assert yaml_fields(kind)["cpu"].about.text in text
