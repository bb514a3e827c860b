"""The Helm chart: what it renders, what it refuses, and its life in a cluster. Part of `make test-kubernetes`.

After a change of a template, `python -m tests.e2e.test_kubernetes_helm` writes the golden files anew; read their diff.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.cluster import cluster, node
from deploy.image import make_image
from fairlead import __version__
from fairlead.client import Client, application
from fairlead.engines.kubernetes.install.manifests import Certificate, Installation, render_manifests
from fairlead.settings import read_settings
from scripts.generate_chart import CHART_VERSION
from scripts.release import pack_chart
from tests.clusters import running_cluster, set_nodes
from tests.e2e.helm_release import CHART, PATIENCE, WAITS, Release, helm

pytestmark = pytest.mark.kubernetes
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "helm"
SPACE = "helm-tests"
CREDENTIALS = "import pathlib; print(pathlib.Path('/data/fairlead/credentials.json').read_text())"
#: Groups of what scripts/generate_chart.py makes.
GENERATED = ("rbac.", "admissionregistration.", "apiextensions.")
Object = dict[str, Any]


def render(*arguments: str, chart: Path = CHART) -> list[Object]:
    done = helm("template", "fairlead", str(chart), "--namespace", "fairlead", "--kube-version", "1.34.0", *arguments)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def write_golden(*arguments: str) -> str:
    """Without versions and passwords, and without what scripts/generate_chart.py makes and checks."""
    made = [one for one in render(*arguments) if not one["apiVersion"].startswith(GENERATED)]
    text = yaml.safe_dump_all(made, sort_keys=False, width=110)
    text = re.sub(r"(password: |token: |fairlead:)\w{32}", r"\1PASSWORD", text)
    return text.replace(CHART_VERSION, "CHART-VERSION").replace(__version__, "VERSION")


CASES = {"default.yaml": (), "all.yaml": ("-f", str(GOLDEN / "values.yaml"))}


@pytest.mark.parametrize("name", CASES)
def test_the_chart_renders_as_before(name: str) -> None:
    assert write_golden(*CASES[name]) == (GOLDEN / name).read_text()


def test_the_golden_values_change_every_default() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    given = yaml.safe_load((GOLDEN / "values.yaml").read_text())
    # SQLite's volume, an own secret and an own affinity exclude what is set instead.
    assert set(defaults) - set(given) == {"persistence", "affinity", "resources"}
    assert set(given) <= set(defaults)


def test_the_server_knows_every_flag_that_the_chart_sets() -> None:
    rendered = by_name(render(*CASES["all.yaml"]))
    [container] = rendered["Deployment", "fairlead"]["spec"]["template"]["spec"]["containers"]
    settings = read_settings(container["args"][1:], {})
    assert settings.sign_on.issuer == "https://login.example.com/company"
    assert (settings.sign_on.groups_claim, settings.sign_on.domains) == ("roles", ("example.com",))
    assert settings.sign_on.scopes == ("openid", "email")


def test_a_release_packs_the_chart(tmp_path: Path) -> None:
    packed = pack_chart(tmp_path)
    assert by_name(render()) == by_name(render(chart=packed))
    assert pack_chart(tmp_path / "..").read_bytes() == packed.read_bytes()


def test_the_chart_passes_lint() -> None:
    done = helm("lint", "--strict", str(CHART), "--kube-version", "1.34.0")
    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize(
    ("setting", "want_text"),
    [
        ("replicas=2", "more than one server needs PostgreSQL"),
        ("webhook.enabled=true", "set tls.existingSecret or tls.certManager.enabled"),
        ("tls.certManager.enabled=true", "name the issuer"),
        ("ingress.enabled=true", "give the host"),
        ("oidc.issuer=https://login.example.com", "oidc.clientId"),
        ("gateway.enabled=true", "name the Gateway"),
        ("nosuch=1", "'nosuch' not allowed"),
        ("antiAffinity=weak", "must be one of"),
    ],
)
def test_values_that_cannot_work_are_refused(setting: str, want_text: str) -> None:
    done = helm("template", "fairlead", str(CHART), "--kube-version", "1.34.0", "--set", setting)
    assert done.returncode != 0
    assert want_text in done.stderr


def by_name(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


@pytest.mark.parametrize("secret", ["", "database"], ids=["SQLite", "PostgreSQL"])
def test_the_server_is_that_of_the_manifests(secret: str) -> None:
    """The same container, volumes and permissions as `fairlead kubernetes manifests` prints."""
    wanted = Installation(image=f"fairlead:{__version__}", has_definitions=False, database_secret=secret)
    printed = by_name(render_manifests(wanted))
    rendered = by_name(render(*(["--set", f"database.existingSecret={secret}"] if secret else [])))
    ours, theirs = (one["Deployment", "fairlead"]["spec"]["template"]["spec"] for one in (rendered, printed))
    ours.pop("affinity")
    ours["containers"][0].pop("imagePullPolicy")
    assert ours == theirs
    for kind, name in printed:
        if kind not in ("Deployment", "Namespace", "ServiceAccount", "Service", "PersistentVolumeClaim"):
            assert rendered[kind, name] == printed[kind, name]
    left = {key for key in printed if key not in rendered}
    assert left == {("Namespace", "fairlead")}


def test_kinds_of_manifests_are_granted_as_by_the_manifests() -> None:
    wanted = Installation(image="", workload_kinds=(("jobset.x-k8s.io", "jobsets"),))
    printed = by_name(render_manifests(wanted))
    kinds = 'workloadKinds=[{"group":"jobset.x-k8s.io","resource":"jobsets"}]'
    rendered = by_name(render("--set-json", kinds))
    for name in ("fairlead", "fairlead-project"):
        assert rendered["ClusterRole", name]["rules"] == printed["ClusterRole", name]["rules"]
        assert rendered["ClusterRole", name]["rules"][-1]["resources"] == ["jobsets"]


def test_the_other_group_is_that_of_the_manifests() -> None:
    group = "workloads.fairlead.dev"
    tls = ("tls.existingSecret=tls", "webhook.enabled=true", "webhook.caBundle=PEM")
    rendered = by_name(render(*(word for one in (f"apiGroup={group}", *tls) for word in ("--set", one))))
    certificate = Certificate(authority="PEM", chain="", key="")
    printed = by_name(render_manifests(Installation(image="", group=group, certificate=certificate)))
    # Helm installs what is in our group anyway.
    printed.pop(("CustomResourceDefinition", f"distributedinferenceworkloads.{group}"))
    generated = [key for key, one in printed.items() if one["apiVersion"].startswith(GENERATED)]
    for key in generated:
        rendered[key]["metadata"].pop("annotations", None)
        assert rendered[key] == printed[key]
    assert ("CustomResourceDefinition", f"trainingworkloads.{group}") in generated
    [container] = rendered["Deployment", "fairlead"]["spec"]["template"]["spec"]["containers"]
    assert f"--group={group}" in container["args"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        set_nodes(started)
        archive = tmp_path_factory.mktemp("image") / "fairlead.tar"
        make_image(archive, "docker.io/library/fairlead:helm")
        node.import_images(started.layout, archive)
        yield started


@pytest.fixture
def release(running: cluster.Cluster) -> Iterator[Release]:
    """Nothing of the release or of its projects is left before and after."""
    release = Release(running, SPACE)
    release.clean()
    yield release
    release.clean()


def test_it_is_installed_tested_upgraded_and_uninstalled(release: Release) -> None:
    image = ("--set", "image.repository=docker.io/library/fairlead", "--set", "image.tag=helm")
    release.helm("install", "fairlead", str(CHART), "--create-namespace", *image, *WAITS)
    release.helm("test", "fairlead", "--timeout", PATIENCE)
    [before] = release.pods()

    service = release.get("service", "fairlead")
    said = release.kubectl("exec", "deployment/fairlead", "-n", SPACE, "--", "python3", "-c", CREDENTIALS).stdout
    known = json.loads(said)
    url = f"http://{service['spec']['clusterIP']}:7420"
    sign_in = application(known["clientId"], known["clientSecret"])
    with Client(url, credentials=sign_in) as client:
        [cluster_id] = [one["uuid"] for one in client.clusters()]

    values = ("--reuse-values", "--set", "podLabels.step=two", "--set", "podDisruptionBudget.enabled=true")
    release.helm("upgrade", "fairlead", str(CHART), *values, *WAITS)
    [after] = release.pods()
    assert after["metadata"]["labels"]["step"] == "two"
    assert after["metadata"]["name"] != before["metadata"]["name"]
    with Client(url, credentials=sign_in) as client:
        assert [one["uuid"] for one in client.clusters()] == [cluster_id]

    release.helm("rollback", "fairlead", "1", *WAITS)
    [back] = release.pods()
    assert "step" not in back["metadata"]["labels"]
    release.helm("uninstall", "fairlead", "--wait")
    assert release.pods() == []
    # What people submitted stays, and so do the definitions of their objects.
    assert release.get("pvc", "fairlead")
    assert "trainingworkloads.run.ai" in release.kubectl("get", "crd", "-o", "name").stdout


if __name__ == "__main__":
    for file, given in CASES.items():
        (GOLDEN / file).write_text(write_golden(*given))
    sys.exit(0)
