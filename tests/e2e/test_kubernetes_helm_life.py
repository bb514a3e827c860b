"""The chart with PostgreSQL, TLS, webhook and two servers on a cluster: installed, upgraded and rolled back under load.

Run by `make test-operators`. What the chart renders, and its life with SQLite, are in `test_kubernetes_helm.py`.
"""

import base64
import itertools
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster import cluster, node
from deploy.cluster.certificates import make_authority, sign, write_pair
from deploy.image import make_image
from fairlead.client import Client, application
from fairlead.client.access.tls import make_context
from fairlead.client.access.urls import MACHINES_OWN, Trust
from tests.clusters import running_cluster, set_nodes
from tests.e2e.helm_release import CHART, PATIENCE, WAITS, Release
from tests.e2e.next_version import write_next_version
from tests.e2e.request_load import Request, RequestLoad
from tests.e2e.server import until
from tests.kubernetes.postgres_image import POSTGRES_IMAGE, provide_image

pytestmark = pytest.mark.operators
SPACE = "helm-life"
IMAGE = "docker.io/library/fairlead"
THIS, NEXT = "helm-this", "helm-next"
SECONDS = 240.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    """A cluster with images of PostgreSQL, of this version, and of a next one with a newer layout of the database."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        set_nodes(started)
        folder = tmp_path_factory.mktemp("images")
        provide_image(started.layout, folder)
        make_image(folder / "this.tar", f"{IMAGE}:{THIS}")
        make_image(folder / "next.tar", f"{IMAGE}:{NEXT}", write_next_version(folder))
        for name in ("this.tar", "next.tar"):
            node.import_images(started.layout, folder / name)
        yield started


@pytest.fixture
def release(running: cluster.Cluster) -> Iterator[Release]:
    release = Release(running, SPACE)
    release.clean()
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    release.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": restricted}})
    yield release
    release.clean()


def make_secret(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}


@pytest.fixture
def authority(release: Release, tmp_path: Path) -> Path:
    """The file of a company's authority. The Secret `tls` has what it signed, and not the authority itself."""
    made = make_authority()
    write_pair(tmp_path, "authority", made.certificate, made.key)
    sign(tmp_path, made, "tls", [f"fairlead.{SPACE}.svc"])
    release.apply(make_secret("tls", **{name: (tmp_path / name).read_text() for name in ("tls.crt", "tls.key")}))
    return tmp_path / "authority.crt"


def write_values(folder: Path, **given: Any) -> tuple[str, str]:
    file = folder / "values.json"
    file.write_text(json.dumps({"image": {"repository": IMAGE, "tag": THIS}, **given}))
    return "-f", str(file)


def address(release: Release) -> str:
    return f"{release.get('service', 'fairlead')['spec']['clusterIP']}:7420"


def log_in(release: Release, url: str, trust: Trust = MACHINES_OWN) -> Client:
    kept = release.get("secret", "fairlead-keys")["data"]["credentials.json"]
    known = json.loads(base64.b64decode(kept))
    return Client(url, credentials=application(known["clientId"], known["clientSecret"]), trust=trust)


def describe(client: Client, name: str, command: str, args: str) -> dict[str, Any]:
    spec = {"image": "busybox:1.35", "command": command, "args": args, "compute": {"cpuCoreRequest": 0.01}}
    place = {"projectId": str(client.projects()[0]["id"]), "clusterId": client.clusters()[0]["uuid"]}
    return {"name": name, **place, "spec": spec}


def count_answers(load: RequestLoad, more: int) -> None:
    seen = len(load.answers)
    until(lambda: len(load.answers) > seen + more, "more requests", SECONDS)


def tags_of(release: Release) -> list[str]:
    return [one["spec"]["containers"][0]["image"].rpartition(":")[2] for one in release.pods()]


def replace_under_load(release: Release, client: Client, runs: str, trust: ssl.SSLContext | None = None) -> None:
    """Upgraded to the next version and rolled back while requests run: none fails, and nothing that runs is touched."""
    pods = client.request("GET", f"/api/v1/workloads/{runs}/pods")["pods"]
    short, numbers = describe(client, "short", "sleep", "1"), itertools.count()

    def write() -> tuple[str, str, Any]:
        """One submission among many reads: the machine of the tests is small."""
        number = next(numbers)
        is_write = number % 20 == 0
        path = "/api/v1/workloads/trainings" if is_write else "/api/v1/org-unit/projects"
        return "POST" if is_write else "GET", path, {**short, "name": f"short-{number}"} if is_write else None

    requests: list[Request] = [
        write,
        lambda: ("GET", "/api/v1/workloads?limit=5", None),
        # Passed on to the server that watches the cluster.
        lambda: ("GET", f"/api/v1/workloads/{runs}/logs?tailLines=1", None),
    ]
    load = RequestLoad(lambda: client.url, client.token(), trust)
    number = len(release.pods())
    with load.running(requests):
        count_answers(load, 30)
        release.helm("upgrade", "fairlead", str(CHART), "--reuse-values", "--set", f"image.tag={NEXT}", *WAITS)
        assert tags_of(release) == [NEXT] * number
        count_answers(load, 30)
        release.helm("rollback", "fairlead", *WAITS)
        assert tags_of(release) == [THIS] * number
        count_answers(load, 30)
    assert [one for one in load.answers if one[1] not in (200, 202)] == []
    assert client.workload(runs)["phase"] == "Running"
    assert client.request("GET", f"/api/v1/workloads/{runs}/pods")["pods"] == pods
    submitted = sum(status == 202 for _, status in load.answers)
    found = client.request("GET", "/api/v1/workloads/count?filterBy=name=@short-")["count"]
    assert (found, submitted > 0) == (submitted, True)


def test_two_servers_with_a_trial_database_tls_and_webhook(release: Release, authority: Path, tmp_path: Path) -> None:
    given = write_values(
        tmp_path,
        replicas=2,
        database={"trial": {"enabled": True, "image": POSTGRES_IMAGE, "storage": "100Mi"}},
        tls={"existingSecret": "tls"},
        webhook={"enabled": True, "caBundle": authority.read_text()},
        networkPolicy={"enabled": True},
        podDisruptionBudget={"enabled": True},
        metrics={"dashboard": {"enabled": True}},
    )
    release.helm("install", "fairlead", str(CHART), *given, *WAITS)
    release.helm("test", "fairlead", "--timeout", PATIENCE)
    for kind in ("networkpolicy/fairlead", "networkpolicy/fairlead-postgresql", "configmap/fairlead-dashboard"):
        release.get(kind)
    budget = until(lambda: release.get("pdb", "fairlead")["status"].get("currentHealthy"), "the budget", SECONDS)
    assert budget == 2

    trust = Trust(certificate_file=str(tmp_path / "tls.crt"))
    with log_in(release, f"https://{address(release)}", trust) as client:
        runs = client.kind("training").submit(describe(client, "runs", "sleep", "86397"))["workloadId"]
        assert client.wait(runs, ("Running",), SECONDS)["phase"] == "Running"
        # Both servers answer what only one of them can.
        for pod in release.pods():
            with log_in(release, f"https://{pod['status']['podIP']}:7420", trust) as server:
                assert b"".join(server.logs(runs)) == b""
        check_webhook(release, client)
        replace_under_load(release, client, runs, make_context(trust))

    release.helm("uninstall", "fairlead", "--wait")
    assert release.pods() == []
    left = release.kubectl("get", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "-o", "name").stdout
    assert "fairlead" not in left
    assert release.get("pvc", "data-fairlead-postgresql-0")
    assert release.get("secret", "fairlead-keys")
    # Without a server, what runs goes on; installed again, it is the same workload.
    found = json.loads(release.kubectl("get", "pods", "-n", "runai-default", "-o", "json").stdout)["items"]
    assert [one["status"]["phase"] for one in found if one["metadata"]["name"].startswith("runs")] == ["Running"]


def check_webhook(release: Release, client: Client) -> None:
    """Once all servers of the Service have the webhook's certificate, a bad object is refused with a reason."""
    spec = {"name": {"value": "wrong"}, "image": {"value": "busybox:1.35"}, "baseWorkload": "nowhere"}
    metadata = {"name": "wrong", "namespace": client.projects()[0]["status"]["namespace"]}
    wrong = {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload", "metadata": metadata, "spec": spec}
    done = release.kubectl("create", "-f", "-", stdin=json.dumps(wrong))
    assert done.returncode != 0
    assert "there is no template 'nowhere'" in done.stderr


def test_one_server_with_an_existing_database(release: Release, tmp_path: Path) -> None:
    release.apply(*render_database())
    url = f"postgresql://fairlead:secret@database.{SPACE}.svc:5432/fairlead"
    release.apply(make_secret("company-database", address=url))
    given = write_values(tmp_path, database={"existingSecret": "company-database", "key": "address"})
    release.helm("install", "fairlead", str(CHART), *given, *WAITS)
    release.helm("test", "fairlead", "--timeout", PATIENCE)
    with log_in(release, f"http://{address(release)}") as client:
        runs = client.kind("training").submit(describe(client, "runs", "sleep", "86397"))["workloadId"]
        assert client.wait(runs, ("Running",), SECONDS)["phase"] == "Running"
        replace_under_load(release, client, runs)
    release.helm("uninstall", "fairlead", "--wait")
    assert release.pods() == []
    assert release.get("secret", "company-database")


def render_database() -> list[dict[str, Any]]:
    """A PostgreSQL that is not the chart's."""
    metadata = {"name": "database", "namespace": SPACE, "labels": {"app": "database"}}
    variables = {"POSTGRES_USER": "fairlead", "POSTGRES_PASSWORD": "secret", "PGDATA": "/data/pgdata"}
    secured = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "postgresql",
        "image": POSTGRES_IMAGE,
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": secured,
    }
    as_user = {"runAsNonRoot": True, "runAsUser": 999, "runAsGroup": 999, "fsGroup": 999}
    spec = {
        "containers": [container],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "securityContext": {**as_user, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    service = {"selector": {"app": "database"}, "ports": [{"port": 5432}]}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
    ]
