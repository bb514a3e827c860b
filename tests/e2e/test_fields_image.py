"""A training's image run for real, by podman: entry point, fields, limits, and nothing left behind. No registry."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.container_server import ContainerServer, beside, opened
from tests.e2e.fields import conditions, refuse
from tests.e2e.server import until

pytestmark = [pytest.mark.debian("podman"), pytest.mark.debian("runc"), pytest.mark.debian("busybox-static")]


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerServer]:
    with opened(tmp_path_factory.mktemp("box"), "--personal") as containers:
        yield containers


@pytest.fixture
def shared(containers: ContainerServer) -> Iterator[ContainerServer]:
    with beside(containers) as shared:
        yield shared


def test_image(containers: ContainerServer) -> None:
    workload = containers.submit("entry")
    containers.server.until_phase(workload, "Completed", patience=180)
    assert containers.server.logs(workload) == "the entry point and its arguments\n"
    assert "image" not in conditions(containers.server, workload, "NotEnforced")
    assert containers.look("inside", "cat /etc/mark") == "this is the image"
    assert containers.names() == []


def test_command_args_and_working_dir(containers: ContainerServer) -> None:
    workload = containers.submit("only-args", args="one 'two three'")
    containers.server.until_phase(workload, "Completed", patience=180)
    assert containers.server.logs(workload) == "the entry point one two three\n"
    assert containers.look("where", "pwd", workingDir="/etc") == "/etc"


def test_a_working_dir_that_the_image_lacks_is_made(containers: ContainerServer) -> None:
    security = {"uidGidSource": "custom", "runAsUid": 61_234, "runAsGid": 61_235}
    script = "pwd; touch mine && ls -A"
    assert containers.look("made", script, workingDir="/job/here").split() == ["/job/here", "mine"]
    assert containers.look("made-own", script, workingDir="/job/here", security=security).split() == [
        "/job/here",
        "mine",
    ]
    # With a limit the container is removed by the server, not by itself.
    limited = {"compute": {"cpuMemoryLimit": "64M"}, "workingDir": "/job/here"}
    assert containers.look("made-limited", script, **limited).split() == ["/job/here", "mine"]
    assert containers.podman("volume", "ls", "--quiet") == ""


def test_a_working_dir_is_made_on_a_shared_server_too(shared: ContainerServer) -> None:
    assert shared.look("made-shared", "pwd; touch mine && ls -A", workingDir="/job/here").split()[1] == "mine"


def test_a_working_dir_keeps_what_the_image_has_there(containers: ContainerServer) -> None:
    assert containers.look("kept", "pwd; cat hello", workingDir="/kept/by/image").split() == ["/kept/by/image", "words"]
    storage = {"emptyDirVolume": [{"path": "/scratch"}]}
    assert containers.look("inside-volume", "pwd; touch x", workingDir="/scratch", storage=storage) == "/scratch"


def test_environment_variables(containers: ContainerServer) -> None:
    variables = [{"name": "MINE", "value": "a b = c"}]
    output = containers.look("variables", "env", environmentVariables=variables)
    assert "MINE=a b = c" in output.splitlines()
    assert "RUNAI_JOB_NAME=variables" in output.splitlines()
    told: dict[str, Any] = {"args": "$(MINE) ${RUNAI_JOB_NAME}", "environmentVariables": variables}
    assert containers.look("expanded", **told) == "the entry point a b = c expanded"


def test_security(containers: ContainerServer) -> None:
    security = {
        "uidGidSource": "custom",
        "runAsUid": 61_234,
        "runAsGid": 61_235,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
    }
    script = "id -u; id -g; touch /tmp/x 2>/dev/null && echo written; grep NoNewPrivs /proc/self/status"
    assert containers.look("security", script, security=security).split() == ["61234", "61235", "NoNewPrivs:", "1"]


def test_cpu_memory_limit(containers: ContainerServer) -> None:
    hungry = "x=xxxxxxxxxxxxxxxx; while true; do x=$x$x; done"
    words = {"command": "/bin/sh", "args": f"-c '{hungry}'"}
    workload = containers.submit("hungry", **words, compute={"cpuMemoryLimit": "32Mi"}, backoffLimit=0)
    ended = containers.server.until_phase(workload, "Failed", patience=180)
    assert "memory" in ended["phaseMessage"]


def test_image_pull_policy(containers: ContainerServer) -> None:
    workload = containers.submit("never", image="localhost/none:1", imagePullPolicy="Never", backoffLimit=0)
    ended = containers.server.until_phase(workload, "Failed", patience=180)
    assert "125" in ended["phaseMessage"]
    assert "localhost/none" in containers.server.logs(workload)


def test_image_from_an_archive(containers: ContainerServer) -> None:
    folder = containers.server.data_dir.parent
    workload = containers.submit("archive", image=f"docker-archive:{folder}/box.tar")
    containers.server.until_phase(workload, "Completed", patience=180)
    assert containers.server.logs(workload).startswith("the entry point")


def test_the_runtime_is_chosen_by_annotation(containers: ContainerServer) -> None:
    on_host = {"annotations": [{"name": "fairlead/runtime", "value": "host"}]}
    assert containers.look("on-host", "test -e /etc/mark || echo host", **on_host) == "host"
    other = {"annotations": [{"name": "fairlead/runtime", "value": "docker"}]}
    assert "this server has no runtime" in refuse(containers.server, "other", **other)


def test_root_in_a_container_has_no_rights_on_the_machine(shared: ContainerServer) -> None:
    assert shared.look("mapped", "id -u; grep -c ' 100000 ' /proc/self/uid_map").split() == ["0", "1"]
    archive = f"docker-archive:{shared.server.data_dir.parent}/box.tar"
    assert "--allow host-path" in refuse(shared.server, "archive", image=archive)


def test_nothing_is_left_of_a_container(containers: ContainerServer) -> None:
    workload = containers.submit("stopped", command="/bin/sleep", args="600", terminationGracePeriodSeconds=0)
    containers.server.until_phase(workload, "Running", patience=180)
    until(containers.names, "the container is there")
    containers.server.call("DELETE", f"/api/v1/workloads/trainings/{workload}")
    assert until(lambda: not containers.names(), "the container is gone")
    lost = containers.submit("lost", command="/bin/sleep", args="600", backoffLimit=0)
    containers.server.until_phase(lost, "Running", patience=180)
    (name,) = until(containers.names, "the container is there")
    live = containers.server.data_dir / "pods" / "live" / name.removeprefix("fairlead-")
    os.kill(json.loads(live.read_text().splitlines()[-1])["pid"], 9)
    assert until(lambda: name not in containers.names(), "the container of the lost supervisor is gone")
    containers.server.call("DELETE", f"/api/v1/workloads/trainings/{lost}")
    assert until(lambda: not containers.names(), "the container of the next attempt is gone too")
