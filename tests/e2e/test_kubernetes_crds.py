"""The generated custom resource definitions on a real kube-apiserver, asked with a real kubectl.

Part of `make test-kubernetes`, which builds the server first.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster import build, cluster
from fairlead.formats.crd import render_crd
from fairlead.formats.yaml_fields import yaml_fields
from fairlead.formats.yaml_write import render_document, render_yaml
from fairlead.kinds import KINDS

ROOT = Path(__file__).parents[2]
KIND = KINDS["training"]
EVERY = json.loads((ROOT / "tests/golden/training/every-field.request.json").read_text())["spec"]
SNIPPETS = sorted((ROOT / "tests/golden/yaml/reference").glob("*.yaml"))
FIELDS = [name for name, field in yaml_fields(KIND).items() if KIND.letter in field.kinds]
Kubectl = Callable[..., subprocess.CompletedProcess[str]]
HEAD = {"apiVersion": "run.ai/v2alpha1", "kind": KIND.resource}


pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("crds") / "cluster"
    cluster.up(folder, "api")

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [build.kubectl(), f"--kubeconfig={folder / 'kubeconfig'}", f"--cache-dir={folder / 'cache'}", *words]
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


def test_definitions_have_no_trouble(kubectl: Kubectl) -> None:
    found = json.loads(kubectl("get", "crd", render_crd(KIND)["metadata"]["name"], "-o", "json").stdout)
    conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_snippets_apply(kubectl: Kubectl, path: Path) -> None:
    text = path.read_text().replace("kind: InteractiveWorkload", f"kind: {KIND.resource}")
    made = kubectl("apply", "--validate=strict", "-f", "-", stdin=text)
    assert made.returncode == 0, made.stderr


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
        pytest.param({"image": {"value": "i"}}, "exactly one of name and namePrefix", id="no name"),
        pytest.param(
            {"name": {"value": "a"}, "namePrefix": {"value": "b"}, "image": {"value": "i"}},
            "exactly one of name and namePrefix",
            id="two names",
        ),
        pytest.param({"name": {"value": "a"}}, "image must be given", id="no image"),
        pytest.param({"cpu": {"value": "2"}, "cpuLimit": {"value": 1}}, "cpuLimit is below cpu", id="CPU limit"),
        pytest.param({"memory": {"value": "2G"}, "memoryLimit": {"value": "1G"}}, "memoryLimit is below", id="memory"),
        pytest.param(
            {"gpuMemory": {"value": "2G"}, "gpuMemoryLimit": {"value": "1M"}},
            "gpuMemoryLimit is below",
            id="GPU memory",
        ),
        pytest.param({"parallelism": {"value": 2}}, "parallelism is above completions", id="parallelism"),
        pytest.param(
            {"parallelism": {"value": 3}, "completions": {"value": 2}}, "parallelism is above completions", id="both"
        ),
        pytest.param({"gpu": {"value": "0.5"}, "gpuMemory": {"value": "1G"}}, "give one of them", id="two shares"),
        pytest.param({"podAffinitySchedulingRule": {"value": "hard"}}, "only with podAffinity", id="rule alone"),
        pytest.param({"podAffinityTopology": {"value": "z"}}, "only with podAffinity", id="topology alone"),
        pytest.param({"tty": {"value": True}}, "tty needs stdin", id="tty"),
        pytest.param({"imagePullPolicy": {"value": "Sometimes"}}, "Unsupported value", id="enum"),
        pytest.param({"cpu": {"value": "many"}}, "cpu.value", id="pattern"),
        pytest.param({"cpu": {"vlaue": 1}}, "vlaue", id="wrapper misspelt"),
        pytest.param({"comand": {"value": "x"}}, "unknown field", id="field misspelt"),
    ],
)
def test_refusals(kubectl: Kubectl, spec: dict[str, Any], want_words: str) -> None:
    named = {} if {"name", "image"} & set(spec) else {"name": {"value": "a"}, "image": {"value": "i"}}
    body = {**HEAD, "metadata": {"name": "refused", "namespace": "runai-team-a"}, "spec": {**named, **spec}}
    made = kubectl("create", "--validate=strict", "-f", "-", stdin=json.dumps(body))
    assert made.returncode != 0
    assert want_words in made.stderr


def test_templates_need_neither_name_nor_image(kubectl: Kubectl) -> None:
    spec = {"usage": "Template", "cpu": {"value": 1}}
    body = {**HEAD, "metadata": {"name": "template", "namespace": "runai-team-a"}, "spec": spec}
    made = kubectl("create", "--validate=strict", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr


def test_explain_lists_every_field(kubectl: Kubectl) -> None:
    text = kubectl("explain", f"{KIND.resource.lower()}.spec").stdout
    listed = {line.split("\t")[0].strip() for line in text.splitlines() if "\t" in line}
    assert set(FIELDS) <= listed


@pytest.mark.parametrize("name", FIELDS)
def test_explain_of_one_field(kubectl: Kubectl, name: str) -> None:
    text = " ".join(kubectl("explain", f"{KIND.resource.lower()}.spec.{name}").stdout.split())
    assert yaml_fields(KIND)[name].about.text in text
