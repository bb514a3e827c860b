"""Volumes of a training on a shared server, from the request to what the process sees; and what becomes of claims."""

import os
import socket
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fields import conditions, look, refuse
from tests.e2e.server import IDLE_PROCESSES, Server, until

AS_ROOT = os.geteuid() == 0


def allowed(folder: Path) -> list[str]:
    return ["--allow", f"host-path={folder}/allowed", "--allow", "git-protocol=http", "--allow", "host-namespaces"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "allowed").mkdir()
    (folder / "allowed" / "file").write_text("of the machine")
    server = Server(folder / "data", "--retry-delay", "20", *allowed(folder)).start()
    yield server
    server.close()


def keep(server: Server, kind: str, name: str, **values: str) -> str:
    answer = server.call("POST", f"/api/v1/{kind}", {"name": name, "projectId": "1", "data": values})
    assert answer.status == 201, answer
    return str(answer.json["id"])


def change(server: Server, kind: str, id: str, **values: str) -> None:
    answer = server.call("PUT", f"/api/v1/{kind}/{id}", {"data": values})
    assert answer.status == 200, answer


def claims(server: Server) -> dict[str, dict[str, Any]]:
    answer = server.call("GET", "/api/v1/persistent-volume-claims?projectId=1")
    assert answer.status == 200, answer
    return {found["name"]: found for found in answer.json["items"]}


def stored(server: Server) -> list[str]:
    """The folders behind claims, as they are on the disk."""
    folder = server.data_dir / "claims"
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []


def pvc(path: str = "/claim", **members: Any) -> dict[str, Any]:
    return {"pvc": [{"path": path, **members}]}


def new(path: str = "/claim", **members: Any) -> dict[str, Any]:
    return pvc(path, claimInfo={"size": "20Mi"}, **members)


def test_config_map_and_secret_volumes(shared: Server) -> None:
    keep(shared, "config-maps", "settings", **{"a.conf": "x=1"})
    keep(shared, "secrets", "hushed", token="not-for-others")
    storage = {
        "configMapVolume": [{"configMap": "settings", "mountPath": "/conf"}],
        "secretVolume": [{"secret": "hushed", "mountPath": "/hushed", "defaultMode": "0400"}],
        "emptyDirVolume": [{"path": "/scratch"}],
    }
    script = "cat /conf/a.conf; stat -L -c ' %a' /hushed/token; sha256sum < /hushed/token; touch /scratch/x"
    digest = sha256(b"not-for-others").hexdigest()
    assert look(shared, "files", script, storage=storage) == f"x=1 400\n{digest}  -"
    found = [path for path in shared.data_dir.rglob("*") if path.is_file() and b"not-for-others" in path.read_bytes()]
    assert found == []


def test_host_path(shared: Server) -> None:
    allowed = str(shared.data_dir.parent / "allowed")
    storage = {"hostPath": [{"path": allowed, "mountPath": "/here"}]}
    assert look(shared, "host-path", "cat /here/file", storage=storage) == "of the machine"
    refusal = refuse(shared, "host-path-beyond", storage={"hostPath": [{"path": "/etc", "mountPath": "/here"}]})
    assert "storage.hostPath[0].path" in refusal
    assert "--allow host-path=/etc" in refusal


def test_what_cannot_be_provided_fails_before_the_start(shared: Server) -> None:
    nfs = {"nfs": [{"server": "files", "path": "/export", "mountPath": "/nfs"}]}
    if "\tnfs" not in Path("/proc/filesystems").read_text():
        assert "NFS cannot be mounted here" in refuse(shared, "nfs", storage=nfs)
    block = pvc(claimInfo={"size": "20Mi", "volumeMode": "Block"})
    assert "claimInfo.volumeMode: the local engine has no raw devices" in refuse(shared, "block", storage=block)


@pytest.mark.parametrize(
    ("storage", "want"),
    [
        ({"emptyDirVolume": [{"path": "/dev"}]}, "spec.storage.emptyDirVolume[0].path"),
        ({"emptyDirVolume": [{"path": "/data"}, {"path": "/dev//x"}]}, "spec.storage.emptyDirVolume[1].path"),
        ({"configMapVolume": [{"configMap": "c", "mountPath": "/sys/x"}]}, "spec.storage.configMapVolume[0].mountPath"),
        ({"git": [{"repository": "file:///etc", "path": "/code"}]}, "spec.storage.git[0].repository"),
    ],
)
def test_what_no_workload_may_mount_is_refused_at_submission(
    shared: Server, storage: dict[str, Any], want: str
) -> None:
    answer = shared.submit("kernel", "/bin/true", storage=storage)
    assert answer.status == 400, answer
    assert [issue["field"] for issue in answer.json["complianceIssues"]] == [want]


def test_shared_memory_can_be_replaced(shared: Server) -> None:
    storage = {"emptyDirVolume": [{"path": "/dev/shm", "medium": "Memory", "sizeLimit": "32Mi"}]}
    assert look(shared, "own-shm", "touch /dev/shm/x && echo there", storage=storage) == "there"


def test_data_sharing_says_that_it_is_not_enforced(shared: Server) -> None:
    workload = shared.run("sharing", "/bin/true", storage=new(dataSharing=True))
    shared.until_phase(workload, "Completed")
    assert (
        "share the data as a data volume" in conditions(shared, workload, "NotEnforced")["storage.pvc[0].dataSharing"]
    )
    delete(shared, workload)
    nothing_stored(shared)


FOLLOWING = (
    "while test $(cat /conf/a) != newest; do cat /conf/a; echo; sleep 0.05; done;"
    "ls /conf /hushed; cat /hushed/key /only; touch /conf/mine 2>/dev/null || echo read-only"
)


def test_volumes_of_config_maps_and_secrets_follow_changes(shared: Server) -> None:
    """In a pod that runs: other values, keys that come and go, all at once; one entry alone stays as it was."""
    settings = keep(shared, "config-maps", "followed", a="first", gone="x")
    hushed = keep(shared, "secrets", "followed", key="first-key")
    storage = {
        "configMapVolume": [
            {"configMap": "followed", "mountPath": "/conf"},
            {"configMap": "followed", "mountPath": "/only", "subPath": "a"},
        ],
        "secretVolume": [{"secret": "followed", "mountPath": "/hushed"}],
    }
    workload = shared.run("following", "/bin/sh", f"-c '{FOLLOWING}'", storage=storage)
    shared.until_phase(workload, "Running")
    until(lambda: "first" in shared.logs(workload), "what it is at first")
    change(shared, "config-maps", settings, a="second", gone="x")
    until(lambda: "second" in shared.logs(workload), "what it was changed to")
    change(shared, "secrets", hushed, key="second-key")
    # A server that comes back tells pods what changed while nobody could.
    shared.kill()
    shared.start()
    change(shared, "config-maps", settings, a="newest", come="y")
    shared.until_phase(workload, "Completed")
    said = shared.logs(workload).rpartition("/conf:\n")[2].split()
    assert said == ["a", "come", "/hushed:", "key", "second-keyfirstread-only"]


def delete(server: Server, workload: str) -> None:
    assert server.call("DELETE", f"/api/v1/workloads/trainings/{workload}").status == 202
    until(lambda: server.workload(workload).get("deletedAt"), "its end")


def nothing_stored(server: Server) -> None:
    until(lambda: not stored(server), "the end of every claim")


def suspend(server: Server, workload: str) -> None:
    assert server.call("POST", f"/api/v1/workloads/trainings/{workload}/suspend").status == 202
    server.until_phase(workload, "Stopped")


def resume(server: Server, workload: str) -> None:
    assert server.call("POST", f"/api/v1/workloads/trainings/{workload}/resume").status == 202
    server.until_phase(workload, "Running")


COUNTING = "echo x >> /claim/starts; wc -l < /claim/starts; trap 'exit 1' TERM; sleep 600 & wait"


def counted(server: Server, workload: str, want: str) -> None:
    until(lambda: server.logs(workload).split()[-1:] == [want], f"start number {want}")


def test_new_claim_is_kept_over_suspend_and_goes_with_its_workload(shared: Server) -> None:
    workload = shared.run("owner", "/bin/sh", f'-c "{COUNTING}"', storage=new(name="Upper"))
    shared.until_phase(workload, "Running")
    counted(shared, workload, "1")
    assert claims(shared)["owner-upper"]["size"] == "20Mi"
    suspend(shared, workload)
    assert len(stored(shared)) == 1
    resume(shared, workload)
    counted(shared, workload, "2")
    delete(shared, workload)
    nothing_stored(shared)
    assert "owner-upper" not in claims(shared)


def test_ephemeral_claim_goes_at_each_stop(shared: Server) -> None:
    workload = shared.run("passing", "/bin/sh", f'-c "{COUNTING}"', storage=new(ephemeral=True))
    shared.until_phase(workload, "Running")
    counted(shared, workload, "1")
    assert not [name for name in claims(shared) if name.startswith("passing")]
    suspend(shared, workload)
    nothing_stored(shared)
    resume(shared, workload)
    counted(shared, workload, "1")
    delete(shared, workload)
    nothing_stored(shared)


def test_existing_claim_stays_and_is_mounted_by_several(shared: Server) -> None:
    body = {"name": "shelf", "projectId": "1", "size": "20Mi"}
    made = shared.call("POST", "/api/v1/persistent-volume-claims", body)
    assert made.status == 201, made
    existing = pvc(existingPvc=True, claimName="shelf")
    writer = shared.run("writer", "/bin/sh", "-c 'echo text > /claim/book; sleep 600'", storage=existing)
    shared.until_phase(writer, "Running")
    script = "until [ -s /claim/book ]; do sleep 0.02; done; cat /claim/book"
    assert look(shared, "reader", script, storage=existing) == "text"
    delete(shared, writer)
    also = pvc("/also", existingPvc=True, claimName="shelf", readOnly=True)
    assert look(shared, "reader-too", "cat /also/book; touch /also/x 2>&1 | grep -o Read-only", storage=also) == (
        "text\nRead-only"
    )
    assert shared.submit("wanting", "/bin/true", storage=pvc(existingPvc=True, claimName="shelve")).status == 400
    assert shared.call("DELETE", f"/api/v1/persistent-volume-claims/{made.json['id']}").status in (202, 204)
    nothing_stored(shared)


@pytest.mark.skipif(not AS_ROOT, reason="needs root")
def test_a_claim_over_its_size_says_so_to_the_process(shared: Server) -> None:
    script = "head -c 40000000 /dev/zero > /claim/big 2>/dev/null || echo full; rm /claim/big"
    workload = shared.run("filling", "/bin/sh", f"-c '{script}'", storage=new())
    shared.until_phase(workload, "Completed")
    assert shared.logs(workload) == "full\n"
    delete(shared, workload)
    nothing_stored(shared)


def test_a_server_killed_in_between_forgets_no_claim(shared: Server) -> None:
    """The record's end is durable before the storage goes; what a crash left is found at the next start."""
    workload = shared.run("crashing", "/bin/sh", "-c 'touch /claim/x; sleep 600'", storage=new())
    shared.until_phase(workload, "Running")
    leftover = shared.data_dir / "claims" / "left-over"
    shared.kill()
    leftover.mkdir()
    (leftover / "claim.json").write_text('{"workload": "gone", "name": "x"}')
    shared.start()
    assert shared.phase(workload) == "Running"
    assert not leftover.exists()
    assert len(stored(shared)) == 1
    delete(shared, workload)
    nothing_stored(shared)


def test_a_server_killed_while_a_volume_is_filled_continues(shared: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/r.git"
        storage = {"git": [{"repository": address, "path": "/code"}], **new()}
        # The silent host is at this machine's loopback.
        workload = shared.run("filling-up", "/bin/true", storage=storage, security={"hostNetwork": True})
        asking, _ = silent.accept()
        shared.kill()
        shared.start()
        assert shared.phase(workload) == "Initializing"
        delete(shared, workload)
        nothing_stored(shared)
        asking.close()
    until(lambda: len(shared.leftovers()) <= IDLE_PROCESSES, "the end of its processes")
