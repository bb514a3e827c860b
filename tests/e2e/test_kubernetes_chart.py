"""Fairlead installed in a cluster, from its own image: restricted, with the permissions of its table and no others.

Part of `make test-kubernetes`.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.cluster import build, cluster, node
from deploy.image import make_image
from fairlead.client import Client, application
from fairlead.engines.kubernetes.install.permissions import (
    CLUSTER_PERMISSIONS,
    OWN_PERMISSIONS,
    PROJECT_PERMISSIONS,
    Permission,
)
from tests.clusters import running_cluster, set_nodes
from tests.e2e.server import until

pytestmark = pytest.mark.kubernetes
ROOT = Path(__file__).parents[2]
PATIENCE = 240.0
IMAGE = "docker.io/library/fairlead:tested"
ACCOUNT = "system:serviceaccount:fairlead:fairlead"
CREDENTIALS = "import pathlib; print(pathlib.Path('/data/fairlead/credentials.json').read_text())"
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        # Kubernetes' own scheduler would take a node without a kubelet for as good as any.
        set_nodes(started)
        archive = tmp_path_factory.mktemp("image") / "fairlead.tar"
        make_image(archive, IMAGE)
        node.import_images(started.layout, archive)
        yield started


@pytest.fixture(scope="module")
def kubectl(running: cluster.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    cache = tmp_path_factory.mktemp("cache")

    def run(*arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [build.kubectl(), f"--kubeconfig={running.kubeconfig}", f"--cache-dir={cache}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done

    return run


def manifests(running: cluster.Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlead", "kubernetes", "manifests", "--kubeconfig", str(running.kubeconfig)]
    return subprocess.run([*command, "--image", IMAGE, *arguments], capture_output=True, text=True)


def wait_until_available(kubectl: Kubectl) -> None:
    try:
        kubectl("rollout", "status", "deployment/fairlead", "-n", "fairlead", f"--timeout={PATIENCE:.0f}s")
    except AssertionError as error:
        told = kubectl("describe", "pods", "-n", "fairlead").stdout[-3000:]
        said = kubectl("logs", "deployment/fairlead", "-n", "fairlead", check=False).stdout[-3000:]
        raise AssertionError(f"{error}\n{told}\n{said}") from error


@pytest.fixture(scope="module")
def installed(running: cluster.Cluster, kubectl: Kubectl) -> Iterator[str]:
    """The objects, as applied, in a cluster in which no other Fairlead left projects."""
    kubectl("delete", "queues.scheduling.run.ai,namespaces", "-l", "fairlead/cluster", f"--timeout={PATIENCE:.0f}s")
    text = manifests(running).stdout
    kubectl("apply", "-f", "-", stdin=text)
    try:
        wait_until_available(kubectl)
        yield text
    finally:
        kubectl("delete", "-f", "-", "--ignore-not-found", f"--timeout={PATIENCE:.0f}s", stdin=text)


@pytest.fixture
def client(installed: str, kubectl: Kubectl) -> Iterator[Client]:
    service = json.loads(kubectl("get", "service", "fairlead", "-n", "fairlead", "-o", "json").stdout)
    words = ("exec", "deployment/fairlead", "-n", "fairlead", "--", "python3", "-c", CREDENTIALS)
    decoded = json.loads(kubectl(*words).stdout)
    url = f"http://{service['spec']['clusterIP']}:7420"
    with Client(url, credentials=application(decoded["clientId"], decoded["clientSecret"])) as client:
        yield client


def test_it_runs_under_the_restricted_level(installed: str, kubectl: Kubectl) -> None:
    decoded = json.loads(kubectl("get", "namespace", "fairlead", "-o", "json").stdout)
    assert decoded["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    [pod] = json.loads(kubectl("get", "pods", "-n", "fairlead", "-o", "json").stdout)["items"]
    assert pod["status"]["phase"] == "Running"
    who = "import os; print(os.getuid(), open('/proc/self/status').read().split('CapEff:')[1].split()[0])"
    said = kubectl("exec", "deployment/fairlead", "-n", "fairlead", "--", "python3", "-c", who).stdout.split()
    assert said == ["65532", "0000000000000000"]


def granted(kubectl: Kubectl, namespace: str) -> set[tuple[str, str, str]]:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    answer = kubectl(
        "create", "-f", "-", "-o", "json", "--validate=false", f"--as={ACCOUNT}", stdin=json.dumps(review)
    ).stdout
    return {
        (group, resource, verb)
        for rule in json.loads(answer)["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        # Every account may ask what it may.
        if group not in ("authorization.k8s.io", "authentication.k8s.io")
    }


def listed(permissions: tuple[Permission, ...]) -> set[tuple[str, str, str]]:
    return {(one.group, one.resource, verb) for one in permissions for verb in one.verbs}


def test_its_account_may_do_what_the_tables_say_and_not_more(installed: str, kubectl: Kubectl) -> None:
    assert granted(kubectl, "kube-system") == listed(CLUSTER_PERMISSIONS)
    until(
        lambda: granted(kubectl, "runai-default") == listed((*CLUSTER_PERMISSIONS, *PROJECT_PERMISSIONS)),
        "its rights in a project",
        PATIENCE,
    )
    assert granted(kubectl, "fairlead") == listed((*CLUSTER_PERMISSIONS, *OWN_PERMISSIONS))
    for verb, what in (("delete", "nodes"), ("get", "secrets"), ("list", "secrets"), ("create", "clusterroles")):
        assert kubectl("auth", "can-i", verb, what, "-A", f"--as={ACCOUNT}", check=False).stdout.strip() == "no", what
    outside = (("create", "pods"), ("create", "pods/exec"), ("get", "secrets"), ("create", "jobs"))
    for verb, what in outside:
        asked = ("auth", "can-i", verb, what, "-n", "kube-system", f"--as={ACCOUNT}")
        assert kubectl(*asked, check=False).stdout.strip() == "no", what
    for name, want in (("fairlead-keys", "yes"), ("somebodys", "no")):
        asked = ("auth", "can-i", "get", f"secrets/{name}", "-n", "fairlead", f"--as={ACCOUNT}")
        assert kubectl(*asked, check=False).stdout.strip() == want, name


def test_its_account_cannot_grant_itself_more(installed: str, kubectl: Kubectl) -> None:
    def denied(*arguments: str) -> str:
        done = kubectl(*arguments, f"--as={ACCOUNT}", check=False)
        assert done.returncode != 0, arguments
        return done.stderr

    bind = ("create", "rolebinding", "more", "--serviceaccount=fairlead:fairlead")
    said = denied(*bind, "--clusterrole=fairlead-project", "-n", "kube-system")
    assert "binds itself in namespaces of projects only" in said
    assert "is attempting to grant RBAC permissions" in denied(*bind, "--clusterrole=admin", "-n", "runai-default")
    somebody = ("create", "rolebinding", "more", "--user=eve", "--clusterrole=fairlead-project", "-n", "runai-default")
    assert "binds nobody but itself" in denied(*somebody)
    said = denied("label", "namespace", "kube-system", "fairlead/cluster=mine")
    assert "changes namespaces of projects only" in said
    assert "binds itself in namespaces of projects only" in denied(
        *bind, "--clusterrole=fairlead-project", "-n", "default"
    )


def test_a_training_runs_to_its_end(client: Client, kubectl: Kubectl) -> None:
    project = client.projects()[0]
    body = {
        "name": "hello",
        "projectId": str(project["id"]),
        "clusterId": client.clusters()[0]["uuid"],
        "spec": {"image": "busybox:1.35", "command": "echo", "args": "hello", "compute": {"cpuCoreRequest": 0.1}},
    }
    submitted = client.kind("training").submit(body)
    ended = client.wait(submitted["workloadId"], ("Completed", "Failed"), timeout=PATIENCE)
    assert ended["phase"] == "Completed", ended
    client.kind("training").delete(submitted["workloadId"])
    said = kubectl("logs", "deployment/fairlead", "-n", "fairlead").stdout.splitlines()
    refused = [line for line in said if "forbidden" in line]
    assert not refused


def test_definitions_of_somebody_else_are_left_alone(
    running: cluster.Cluster, installed: str, kubectl: Kubectl
) -> None:
    name = "crd/trainingworkloads.run.ai"
    kubectl("label", name, "app.kubernetes.io/managed-by=runai", "--overwrite")
    try:
        refused = manifests(running)
        assert refused.returncode == 1
        assert "trainingworkloads.run.ai" in refused.stderr
        assert refused.stdout == ""
    finally:
        kubectl("label", name, "app.kubernetes.io/managed-by=fairlead", "--overwrite")


def test_the_webhook_refuses_with_the_message_of_a_submission(
    running: cluster.Cluster, client: Client, kubectl: Kubectl
) -> None:
    """Last: from here on the server speaks TLS."""
    namespace = client.projects()[0]["status"]["namespace"]
    kubectl("apply", "-f", "-", stdin=manifests(running, "--webhook").stdout)
    wait_until_available(kubectl)
    # The definition allows it, only the server knows better.
    wrong = {
        "apiVersion": "run.ai/v2alpha1",
        "kind": "TrainingWorkload",
        "metadata": {"name": "wrong", "namespace": namespace},
        "spec": {
            "name": {"value": "wrong"},
            "image": {"value": "busybox:1.35"},
            "baseWorkload": "nowhere",
        },
    }

    def refused() -> Any:
        done = kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(wrong), check=False)
        return done.stderr if done.returncode else None

    said = until(refused, "the webhook to be asked", PATIENCE)
    assert "denied the request" in said
    assert "there is no template 'nowhere'" in said
    right: dict[str, Any] = {**wrong, "spec": {"name": {"value": "right"}, "image": {"value": "busybox:1.35"}}}
    stored = kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=yaml.safe_dump(right)).stdout
    # Whoever asks the API server is written down; the kubeconfig's user is called so.
    assert yaml.safe_load(stored)["spec"]["userId"] == {"value": "admin"}
    # Sent back by somebody else, it is overwritten.
    right["spec"]["userId"] = {"value": "somebody"}
    stored = kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=yaml.safe_dump(right)).stdout
    assert yaml.safe_load(stored)["spec"]["userId"] == {"value": "admin"}
    for body in every_kind(namespace):
        check_round_trip(kubectl, body)
    kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "fairlead")


def every_kind(namespace: str) -> list[dict[str, Any]]:
    """One suspended object of every kind, so that nothing of it runs."""
    fields = {"image": {"value": "busybox:1.35"}, "active": {"value": False}, "gpu": {"value": 0.5}}
    more: dict[str, dict[str, Any]] = {
        "TrainingWorkload": {"parallelism": {"value": "1"}},
        "InteractiveWorkload": {},
        "InferenceWorkload": {"minScale": {"value": 1}, "maxScale": {"value": 1}},
        "DistributedWorkload": {"workers": {"value": 2}, "jobType": {"value": "PyTorch"}},
    }
    bodies: list[dict[str, Any]] = []
    for kind, added in more.items():
        name = f"round-{kind.lower()[:6]}"
        spec = {"name": {"value": name}, **fields, **added}
        metadata = {"name": name, "namespace": namespace}
        bodies.append({"apiVersion": "run.ai/v2alpha1", "kind": kind, "metadata": metadata, "spec": spec})
    groups = {"leader": {"image": "busybox:1.35"}, "replicas": 1, "active": False}
    own = {"apiVersion": "workloads.fairlead.dev/v1alpha1", "kind": "DistributedInferenceWorkload"}
    return [*bodies, {**own, "metadata": {"name": "round-groups", "namespace": namespace}, "spec": groups}]


def check_round_trip(kubectl: Kubectl, body: dict[str, Any]) -> None:
    """What is read, deleted and applied again is the same; applied once more, as by GitOps, it does not change."""
    kind, name, namespace = body["kind"], body["metadata"]["name"], body["metadata"]["namespace"]
    place = (kind, name, "-n", namespace)

    def accepted() -> Any:
        decoded = json.loads(kubectl("get", *place, "-o", "json").stdout)
        has_answer = decoded.get("status", {}).get("workloadId") and decoded["metadata"].get("finalizers")
        return decoded if has_answer and decoded["status"]["phase"] == "Stopped" else None

    by_tool = ("apply", "--server-side", "--field-manager=argocd", "-f", "-")
    kubectl(*by_tool, stdin=yaml.safe_dump(body))
    first = until(accepted, f"{kind} to be accepted", PATIENCE)
    kubectl(*by_tool, stdin=yaml.safe_dump(body))
    assert (
        kubectl("diff", "--server-side", "--field-manager=argocd", "-f", "-", stdin=yaml.safe_dump(body)).stdout == ""
    )
    again = until(accepted, f"{kind} to be accepted", PATIENCE)
    assert again["metadata"]["generation"] == first["metadata"]["generation"], kind
    text = kubectl("get", *place, "-o", "yaml").stdout
    kubectl("delete", *place, f"--timeout={PATIENCE:.0f}s")
    kubectl("apply", "-f", "-", stdin=text)
    second = until(accepted, f"{kind} to be accepted again", PATIENCE)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["spec"] == first["spec"], kind
    kubectl("delete", *place, f"--timeout={PATIENCE:.0f}s")


def test_the_kustomize_base_is_what_the_command_prints(running: cluster.Cluster, kubectl: Kubectl) -> None:
    printed = list(yaml.safe_load_all(kubectl("kustomize", str(ROOT / "deploy" / "kustomize")).stdout))
    command = [sys.executable, "-m", "fairlead", "kubernetes", "manifests", "--offline"]
    shown = list(yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in shown}
    assert {(one["kind"], one["metadata"]["name"]): one for one in printed} == by_name
