"""A training's image run for real, by podman: entry point, fields, limits, and nothing left behind. No registry."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.container_box import Box, beside, opened
from tests.e2e.fields import conditions, refuse
from tests.e2e.server import until

pytestmark = [pytest.mark.debian("podman"), pytest.mark.debian("runc"), pytest.mark.debian("busybox-static")]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with opened(tmp_path_factory.mktemp("box"), "--personal") as box:
        yield box


@pytest.fixture
def shared(box: Box) -> Iterator[Box]:
    with beside(box) as shared:
        yield shared


def test_image(box: Box) -> None:
    workload = box.submit("entry")
    box.server.until_phase(workload, "Completed", patience=180)
    assert box.server.logs(workload) == "the entry point and its arguments\n"
    assert "image" not in conditions(box.server, workload, "NotEnforced")
    assert box.look("inside", "cat /etc/mark") == "this is the image"
    assert box.names() == []


def test_command_args_and_working_dir(box: Box) -> None:
    workload = box.submit("only-args", args="one 'two three'")
    box.server.until_phase(workload, "Completed", patience=180)
    assert box.server.logs(workload) == "the entry point one two three\n"
    assert box.look("where", "pwd", workingDir="/etc") == "/etc"


def test_a_working_dir_that_the_image_lacks_is_made(box: Box) -> None:
    security = {"uidGidSource": "custom", "runAsUid": 61_234, "runAsGid": 61_235}
    script = "pwd; touch mine && ls -A"
    assert box.look("made", script, workingDir="/job/here").split() == ["/job/here", "mine"]
    assert box.look("made-own", script, workingDir="/job/here", security=security).split() == ["/job/here", "mine"]
    # With a limit the container is removed by the server, not by itself.
    limited = {"compute": {"cpuMemoryLimit": "64M"}, "workingDir": "/job/here"}
    assert box.look("made-limited", script, **limited).split() == ["/job/here", "mine"]
    assert box.podman("volume", "ls", "--quiet") == ""


def test_a_working_dir_is_made_on_a_shared_server_too(shared: Box) -> None:
    assert shared.look("made-shared", "pwd; touch mine && ls -A", workingDir="/job/here").split()[1] == "mine"


def test_a_working_dir_keeps_what_the_image_has_there(box: Box) -> None:
    assert box.look("kept", "pwd; cat hello", workingDir="/kept/by/image").split() == ["/kept/by/image", "words"]
    storage = {"emptyDirVolume": [{"path": "/scratch"}]}
    assert box.look("inside-volume", "pwd; touch x", workingDir="/scratch", storage=storage) == "/scratch"


def test_environment_variables(box: Box) -> None:
    variables = [{"name": "MINE", "value": "a b = c"}]
    words = box.look("variables", "env", environmentVariables=variables)
    assert "MINE=a b = c" in words.splitlines()
    assert "RUNAI_JOB_NAME=variables" in words.splitlines()
    told: dict[str, Any] = {"args": "$(MINE) ${RUNAI_JOB_NAME}", "environmentVariables": variables}
    assert box.look("expanded", **told) == "the entry point a b = c expanded"


def test_security(box: Box) -> None:
    security = {
        "uidGidSource": "custom",
        "runAsUid": 61_234,
        "runAsGid": 61_235,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
    }
    script = "id -u; id -g; touch /tmp/x 2>/dev/null && echo written; grep NoNewPrivs /proc/self/status"
    assert box.look("security", script, security=security).split() == ["61234", "61235", "NoNewPrivs:", "1"]


def test_cpu_memory_limit(box: Box) -> None:
    hungry = "x=xxxxxxxxxxxxxxxx; while true; do x=$x$x; done"
    words = {"command": "/bin/sh", "args": f"-c '{hungry}'"}
    workload = box.submit("hungry", **words, compute={"cpuMemoryLimit": "32Mi"}, backoffLimit=0)
    ended = box.server.until_phase(workload, "Failed", patience=180)
    assert "memory" in ended["phaseMessage"]


def test_image_pull_policy(box: Box) -> None:
    workload = box.submit("never", image="localhost/none:1", imagePullPolicy="Never", backoffLimit=0)
    ended = box.server.until_phase(workload, "Failed", patience=180)
    assert "125" in ended["phaseMessage"]
    assert "localhost/none" in box.server.logs(workload)


def test_image_from_an_archive(box: Box) -> None:
    folder = box.server.data_dir.parent
    workload = box.submit("archive", image=f"docker-archive:{folder}/box.tar")
    box.server.until_phase(workload, "Completed", patience=180)
    assert box.server.logs(workload).startswith("the entry point")


def test_the_runtime_is_chosen_by_annotation(box: Box) -> None:
    on_host = {"annotations": [{"name": "fairlead/runtime", "value": "host"}]}
    assert box.look("on-host", "test -e /etc/mark || echo host", **on_host) == "host"
    other = {"annotations": [{"name": "fairlead/runtime", "value": "docker"}]}
    assert "is not offered here" in refuse(box.server, "other", **other)


def test_root_in_a_container_is_nobody_on_the_machine(shared: Box) -> None:
    assert shared.look("mapped", "id -u; grep -c ' 100000 ' /proc/self/uid_map").split() == ["0", "1"]
    archive = f"docker-archive:{shared.server.data_dir.parent}/box.tar"
    assert "--allow host-path" in refuse(shared.server, "archive", image=archive)


def test_nothing_is_left_of_a_container(box: Box) -> None:
    workload = box.submit("stopped", command="/bin/sleep", args="600", terminationGracePeriodSeconds=0)
    box.server.until_phase(workload, "Running", patience=180)
    until(box.names, "the container is there")
    box.server.call("DELETE", f"/api/v1/workloads/trainings/{workload}")
    until(lambda: not box.names(), "the container is gone")
    lost = box.submit("lost", command="/bin/sleep", args="600", backoffLimit=0)
    box.server.until_phase(lost, "Running", patience=180)
    (name,) = until(box.names, "the container is there")
    live = box.server.data_dir / "pods" / "live" / name.removeprefix("fairlead-")
    os.kill(json.loads(live.read_text().splitlines()[-1])["pid"], 9)
    until(lambda: name not in box.names(), "the container of the lost supervisor is gone")
    box.server.call("DELETE", f"/api/v1/workloads/trainings/{lost}")
    until(lambda: not box.names(), "the container of the next attempt is gone too")
