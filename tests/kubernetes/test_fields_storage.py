"""Volumes of pods on a cluster: claims and how long they last, data volumes, repositories, buckets, exports."""

import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster.images import Image, Layer, write_archive
from deploy.cluster.node import import_images, make_busybox_layer, run_ctr
from fairlead.engines.kubernetes.install.preflight import make_certificate
from fairlead.engines.kubernetes.render.buckets import IMAGE as S3_IMAGE
from fairlead.engines.kubernetes.render.git import IMAGE as GIT_IMAGE
from tests.contract.test_local_fetches import PASSWORD, Guarded, repository
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import STAYS
from tests.ssh_service import ssh_service

__all__ = ["repository"]
pytestmark = [pytest.mark.kubernetes, pytest.mark.debian("git")]


def claims(harness: ClusterHarness) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in harness.objects("persistentvolumeclaims")}


def look(harness: ClusterHarness, name: str, script: str, **storage: Any) -> str:
    """What a script in a real container with these volumes said."""
    workload = harness.submit("training", name, harness.real(script) | {"storage": storage, "backoffLimit": 0})
    ended = harness.until_phase(workload, "Completed", "Failed")
    assert ended["phase"] == "Completed", ended.get("phaseMessage")
    return harness.server.logs(workload)


# Claims


def test_claims_are_made_as_described(harness: ClusterHarness) -> None:
    """`claimInfo` with `storageClass`, `accessModes`, `volumeMode` and `addedAttrValues`, as the cluster has them."""
    modes = {"readWriteOnce": True, "readOnlyMany": True, "readWriteMany": True}
    info = {
        "size": "20Mi",
        "storageClass": "standard",
        "accessModes": modes,
        "volumeMode": "Filesystem",
        "addedAttrValues": [{"key": "team", "value": "blue"}],
    }
    raw = {"size": "1Mi", "storageClass": "standard", "volumeMode": "Block"}
    items = [{"name": "full", "path": "/c", "claimInfo": info}, {"name": "raw", "path": "/dev/raw", "claimInfo": raw}]
    workload = harness.train("brings", storage={"pvc": items})
    made = until(lambda: len(found := claims(harness)) == 2 and found, "the claims", PATIENCE)
    full = made["brings-full"]
    assert full["spec"]["accessModes"] == ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]
    assert full["spec"]["resources"]["requests"]["storage"] == "20Mi"
    assert (full["spec"]["storageClassName"], full["spec"]["volumeMode"]) == ("standard", "Filesystem")
    assert full["metadata"]["annotations"]["team"] == "blue"
    assert made["brings-raw"]["spec"]["volumeMode"] == "Block"
    until(lambda: claims(harness)["brings-full"]["status"]["phase"] == "Bound", "its volume", PATIENCE)
    harness.act("delete", workload)
    until(lambda: claims(harness) == {}, "the end of the claims", PATIENCE)


def test_what_lasts_beyond_a_suspension(harness: ClusterHarness) -> None:
    """A claim keeps its data over a suspension; an `ephemeral` one goes with it, and is there anew."""
    info = {"claimInfo": {"size": "1Mi"}}
    items = [{"name": "kept", "path": "/kept", **info}, {"name": "gone", "path": "/gone", "ephemeral": True, **info}]
    script = f"ls /kept /gone; touch /kept/before /gone/before; {STAYS}"
    workload = harness.submit("training", "pauses", harness.real(script) | {"storage": {"pvc": items}})
    until(lambda: "/gone" in words(harness, workload), "its first words", PATIENCE)
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    assert list(claims(harness)) == ["pauses-kept"]
    harness.act("resume", workload)
    harness.until_phase(workload, "Running")
    until(lambda: "/gone" in words(harness, workload), "its second words", PATIENCE)
    assert words(harness, workload).split() == ["/gone:", "/kept:", "before"]


def words(harness: ClusterHarness, workload: str) -> str:
    return harness.server.call("GET", f"/api/v1/workloads/{workload}/logs").body.decode()


def test_claims_of_the_server_outlive_workloads_and_go_with_their_record(harness: ClusterHarness) -> None:
    """`fairlead pvc create`, and a data volume of it: `dataVolume` by its `id`, at its `mountPath`."""
    body = {"name": "drawer", "projectId": harness.project_id, "size": "10Mi"}
    made = harness.server.call("POST", "/api/v1/persistent-volume-claims", body)
    assert made.status == 201, made
    item = {"path": "/drawer", "existingPvc": True, "claimName": "drawer"}
    assert look(harness, "fills", "echo word > /drawer/word; cat /drawer/word", pvc=[item]) == "word\n"
    harness.delete_all()
    assert "drawer" in claims(harness)
    volume = {"name": "shown", "projectId": harness.project_id, "originPvcName": "drawer"}
    shared = harness.server.call("POST", "/api/v1/datavolumes", volume)
    assert shared.status in (200, 201), shared
    mount = {"id": shared.json["id"], "mountPath": "/shown"}
    assert look(harness, "reads", "cat /shown/word", dataVolume=[mount]) == "word\n"
    harness.delete_all()
    for path in (f"datavolumes/{shared.json['id']}", f"persistent-volume-claims/{made.json['id']}"):
        until(partial(is_deleted, harness, path), f"{path} to be unused", PATIENCE)
    until(lambda: "drawer" not in claims(harness), "the claim's end", PATIENCE)


def test_data_of_another_project_is_refused_before_the_start(harness: ClusterHarness) -> None:
    """Pods mount claims of their own namespace only, and nothing is copied behind anybody's back."""
    other = harness.make_project(f"{harness.project}-other", gpus=0)
    claim = {"name": "theirs", "projectId": other, "size": "10Mi"}
    assert harness.server.call("POST", "/api/v1/persistent-volume-claims", claim).status == 201
    volume = {"name": "lent", "projectId": other, "originPvcName": "theirs"}
    made = harness.server.call("POST", "/api/v1/datavolumes", volume)
    share = {"add": [{"scopeId": harness.project_id, "scopeType": "project"}]}
    assert harness.server.call("PATCH", f"/api/v1/datavolumes/{made.json['id']}/sharedScopes", share).status == 200
    mount = {"dataVolume": [{"id": made.json["id"], "mountPath": "/lent"}]}
    failed = harness.until_phase(
        harness.submit("training", "borrows", harness.real("true") | {"storage": mount}), "Failed"
    )
    assert "lent is a claim of another project" in failed["phaseMessage"]


def is_deleted(harness: ClusterHarness, path: str) -> bool:
    return harness.server.call("DELETE", f"/api/v1/{path}").status < 300


def test_an_export_that_cannot_be_mounted_says_so(harness: ClusterHarness) -> None:
    """`nfs` with its `server`, `path`, `mountPath` and `readOnly`: handed to the node, which has no client here."""
    item = {"server": "100.64.0.1", "path": "/export", "mountPath": "/nfs", "readOnly": True}
    workload = harness.submit("training", "exported", harness.real("true") | {"storage": {"nfs": [item]}})
    [job] = until(lambda: harness.objects("jobs"), "its job", PATIENCE)
    [volume] = job["spec"]["template"]["spec"]["volumes"]
    assert volume["nfs"] == {"server": "100.64.0.1", "path": "/export", "readOnly": True}
    harness.until_phase(workload, "Initializing")
    seen = until(lambda: mount_failures(harness), "the node's words", PATIENCE)
    assert "nfs" in seen


def mount_failures(harness: ClusterHarness) -> str:
    objects = harness.objects("events")
    return " ".join(event["message"] for event in objects if event["reason"] == "FailedMount")


# Repositories


@pytest.fixture(scope="module")
def git_image(harness: ClusterHarness, tmp_path_factory: pytest.TempPathFactory) -> None:
    """git and ssh of this machine under the name of the image that clones; it trusts whoever it talks to."""
    folder = tmp_path_factory.mktemp("git")
    layer = Layer()
    layer.add_program(Path("/usr/bin/git"))
    for name in ("git", "git-remote-http", "git-remote-https"):
        layer.add_program(Path("/usr/lib/git-core") / name, f"/usr/lib/git-core/{name}")
    layer.add_program(Path("/usr/bin/ssh"))
    layer.add_tree(Path("/usr/share/git-core/templates"), "/usr/share/git-core/templates")
    layer.texts["/etc/gitconfig"] = "[http]\n\tsslVerify = false\n"
    for name in ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"):
        for found in Path("/lib/x86_64-linux-gnu").glob(name):
            layer.files[str(found)] = found.resolve()
    settings = {"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["sh"]}
    archive = folder / "git.tar"
    write_archive(archive, [Image((GIT_IMAGE,), (make_busybox_layer(), layer), settings)])
    import_images(harness.cluster.layout, archive)


@pytest.fixture(scope="module")
def host(harness: ClusterHarness) -> str:
    """This machine, as pods see it."""
    return harness.cluster.layout.machine


@pytest.fixture(scope="module")
def repositories(repository: Path, host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The repository over HTTPS, for who knows the password."""
    folder = tmp_path_factory.mktemp("https")
    made = make_certificate("repositories")
    (folder / "key").write_text(made.key)
    (folder / "certificate").write_text(made.chain)
    server = ThreadingHTTPServer((host, 0), partial(Guarded, directory=str(repository.parent)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://{host}:{server.server_address[1]}/{repository.name}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_repositories_are_cloned_before_the_start(harness: ClusterHarness, git_image: None, repositories: str) -> None:
    """`git` with `branch`, `revision`, `passwordSecret` or `secretRef`, and the names of the keys in the secret."""
    values = {"User": "ada", "Password": PASSWORD, "who": "ada", "what": PASSWORD}
    body = {"name": "login", "projectId": harness.project_id, "data": values}
    assert harness.server.call("POST", "/api/v1/secrets", body).status == 201
    own = {"secretKeyOfUser": "who", "secretKeyOfPassword": "what"}
    items: list[dict[str, Any]] = [
        {"name": "a", "path": "/a", "passwordSecret": "login"},
        {"name": "b", "path": "/b", "branch": "side", "passwordSecret": "login", **own},
        {"name": "c", "path": "/c", "revision": "first", "secretRef": {"name": "login", **own}},
        {"name": "d", "path": "/d", "secretRef": {"name": "login", "authenticationMethod": "password"}},
    ]
    cloned = [{**item, "repository": repositories} for item in items]
    said = look(harness, "cloned", "cat /a/file /b/file /c/file /d/file; touch /a/new && ls /a", git=cloned)
    assert said == "twoasideonetwofile\nnew\n"


def test_a_repository_that_refuses_access_is_reported(
    harness: ClusterHarness, git_image: None, repositories: str
) -> None:
    item = {"repository": repositories, "path": "/a"}
    given = harness.real("true") | {"storage": {"git": [item]}, "backoffLimit": 0}
    workload = harness.submit("training", "refused", given)
    failed = harness.until_phase(workload, "Failed")
    assert "git-0" in failed["phaseMessage"]


@pytest.fixture
def ssh_host(host: str, tmp_path: Path, repository: Path) -> Iterator[tuple[str, str]]:
    """A real SSH server that lets in one key; (address of the repository, the key)."""
    with ssh_service(tmp_path, host) as (address, key):
        yield f"{address}{repository}", key


@pytest.mark.debian("openssh-server")
def test_a_repository_over_ssh(harness: ClusterHarness, git_image: None, ssh_host: tuple[str, str]) -> None:
    """`secretRef` with the `authenticationMethod` ssh-key."""
    address, key = ssh_host
    body = {"name": "deploy", "projectId": harness.project_id, "data": {"ssh-privatekey": key}}
    assert harness.server.call("POST", "/api/v1/secrets", body).status == 201
    reference = {"name": "deploy", "authenticationMethod": "ssh-key"}
    item = {"repository": address, "path": "/code", "secretRef": reference}
    assert look(harness, "keyed", "cat /code/file", git=[item]) == "two"


# Buckets


#: The S3 service wants to see a signature and does not check it.
SIGNED = "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


def ask(service: str, method: str, path: str, body: bytes = b"") -> str | None:
    """What an S3 service answers."""
    headers = {"Authorization": SIGNED, "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(service + path, data=body or None, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        error.close()
        return None


@pytest.fixture(scope="module")
def service(harness: ClusterHarness, host: str) -> Iterator[str]:
    """A real S3 service (moto's server) on this machine, and an image with Python under the name that is asked for."""
    run_ctr(harness.cluster.layout, "images", "tag", "--force", "docker.io/library/python:3.11", S3_IMAGE)
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", host, "-p", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = next(line for line in process.stderr if "Running on" in line)
    yield "http://" + line.split("http://")[1].split()[0]
    process.terminate()
    process.wait()
    process.stderr.close()


def test_buckets_are_copied_in_and_changes_go_back(harness: ClusterHarness, service: str) -> None:
    """`s3` with its `bucket`, `url` and `path`, and the names of both keys in the `accessKeySecret`."""
    for path, text in (("/models", b""), ("/models/a/old", b"old"), ("/models/gone", b"x"), ("/models/kept", b"kept")):
        assert ask(service, "PUT", path, text) is not None
    body = {"name": "keys", "projectId": harness.project_id, "data": {"AccessKeyId": "A", "SecretKey": "B", "i": "A"}}
    assert harness.server.call("POST", "/api/v1/secrets", body).status == 201
    items = [
        {"bucket": "models", "path": "/models", "url": service, "accessKeySecret": "keys"},
        {
            "bucket": "models",
            "path": "/again",
            "url": service,
            "accessKeySecret": "keys",
            "secretKeyOfAccessKeyId": "i",
            "secretKeyOfSecretKey": "SecretKey",
        },
    ]
    script = "cat /models/a/old /again/kept; echo new > /models/a/new; rm /models/gone"
    assert look(harness, "bucketed", script, s3=items) == "oldkept"
    until(lambda: ask(service, "GET", "/models/a/new"), "what the pod wrote", PATIENCE)
    assert ask(service, "GET", "/models/a/new") == "new\n"
    assert ask(service, "GET", "/models/gone") is None
    assert ask(service, "GET", "/models/kept") == "kept"


def test_a_missing_bucket_fails_the_pod_with_the_message_of_the_service(harness: ClusterHarness, service: str) -> None:
    item = {"bucket": "nowhere", "path": "/b", "url": service}
    given = harness.real("true") | {"storage": {"s3": [item]}, "backoffLimit": 0}
    failed = harness.until_phase(harness.submit("training", "bucketless", given), "Failed")
    assert "NoSuchBucket" in failed["phaseMessage"]


def test_changes_that_cannot_be_written_back_fail_the_pod(harness: ClusterHarness, service: str) -> None:
    """Its command ends well, and its bucket is gone by then."""
    assert ask(service, "PUT", "/fleeting") is not None
    assert ask(service, "PUT", "/fleeting/there", b"x") is not None
    waits = (
        f'while wget -q -O /dev/null --header "Authorization: {SIGNED}" {service}/fleeting/there; do sleep 0.2; done'
    )
    body = {"name": "fleeting", "projectId": harness.project_id, "data": {"AccessKeyId": "A", "SecretKey": "B"}}
    assert harness.server.call("POST", "/api/v1/secrets", body).status == 201
    item = {"bucket": "fleeting", "path": "/b", "url": service, "accessKeySecret": "fleeting"}
    given = harness.real(f"echo new > /b/new; {waits}") | {"storage": {"s3": [item]}, "backoffLimit": 3}
    workload = harness.submit("training", "fruitless", given)
    assert harness.until_phase(workload, "Running", "Failed")["phase"] == "Running"
    for path in ("/fleeting/there", "/fleeting"):
        assert ask(service, "DELETE", path) is not None
    failed = harness.until_phase(workload, "Failed", "Completed")
    assert failed["phase"] == "Failed"
    assert "storage.s3[0]" in failed["phaseMessage"]
    assert "NoSuchBucket" in failed["phaseMessage"]
    [pod] = harness.pods(workload)
    assert pod["k8sPhase"] == "Failed"


def test_repositories_and_buckets_where_the_strictest_level_is_enforced(
    harness: ClusterHarness, git_image: None, repositories: str, service: str
) -> None:
    """What fetches them runs as the pod's user there, who also checks a revision out."""
    assert ask(service, "PUT", "/strict") is not None
    assert ask(service, "PUT", "/strict/old", b"old") is not None
    values = {"User": "ada", "Password": PASSWORD, "AccessKeyId": "A", "SecretKey": "B"}
    body = {"name": "strict", "projectId": harness.project_id, "data": values}
    assert harness.server.call("POST", "/api/v1/secrets", body).status == 201
    storage = {
        "git": [{"repository": repositories, "path": "/g", "revision": "first", "passwordSecret": "strict"}],
        "s3": [{"bucket": "strict", "path": "/b", "url": service, "accessKeySecret": "strict"}],
    }
    security = {"uidGidSource": "custom", "runAsUid": 61_234}
    given = harness.real("cat /g/file /b/old; echo new > /b/new; touch /g/new")
    harness.enforce("restricted")
    try:
        workload = harness.submit("training", "strict", given | {"storage": storage, "security": security})
        ended = harness.until_phase(workload, "Completed", "Failed")
        assert ended["phase"] == "Completed", ended.get("phaseMessage")
        assert harness.server.logs(workload) == "oneold"
        until(lambda: ask(service, "GET", "/strict/new"), "what the pod wrote", PATIENCE)
    finally:
        harness.enforce("")
