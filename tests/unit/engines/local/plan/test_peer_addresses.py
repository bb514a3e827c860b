"""What pods are told of where the others of their workload are: names, ports, and the program that reaches them."""

import pytest

from fairlead.engines.local.attempts import AttemptFolders
from fairlead.engines.local.launch_order import Volume
from fairlead.engines.local.plan.peer_addresses import fill_in
from fairlead.engines.local.plan.remote_exec import AGENT, check_places, member_link, render_files, render_remote_exec
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodContainer, PodSpec, Request


def pod(**members: object) -> PodSpec:
    given = {
        "workload_id": "w",
        "workload_name": "job",
        "kind": "k",
        "project": "p",
        "namespace": "runai-p",
        "created_by": "me",
        "pod_id": "id",
        "pod_name": "job-launcher-0",
        "attempt": 1,
        "node": "n",
        "role": "launcher",
        "index": 0,
        "container": PodContainer(image="x"),
        "request": Request(),
    }
    return PodSpec(**(given | members))  # type: ignore[arg-type]  # a table of members, not of one type


@pytest.mark.parametrize(
    ("template", "own", "shared"),
    [
        ("{host:job-worker-0}", "job-worker-0", "127.0.0.1"),
        ("{fqdn:job-worker-0}", "job-worker-0.job.runai-p", "127.0.0.1"),
        ("{agent}", AGENT, AGENT),
        ('{"a":{"b":1}}', '{"a":{"b":1}}', '{"a":{"b":1}}'),
    ],
)
def test_variables_of_a_template_are_filled_in(template: str, own: str, shared: str) -> None:
    asked = pod(variables={"V": template})
    assert fill_in(asked, has_own_network=True).variables == {"V": own}
    assert fill_in(asked, has_own_network=False).variables == {"V": shared}


def test_ports_are_apart_where_the_network_is_shared() -> None:
    asked = pod(variables={"A": "{port:2222+0}", "B": "{port:2222+1}"})
    assert set(fill_in(asked, has_own_network=True).variables.values()) == {"2222"}
    found = [int(value) for value in fill_in(asked, has_own_network=False).variables.values()]
    assert found[1] - found[0] == 1


def test_which_pods_may_run_commands_in_which() -> None:
    folders = AttemptFolders("/data")
    launcher = render_remote_exec(pod(may_exec_in="worker", addressed=True), folders)
    worker = pod(role="worker", pod_name="job-worker-0", addressed=True)
    assert launcher is not None
    assert member_link(worker, folders) == f"{launcher.members}/job-worker-0"
    assert render_remote_exec(worker, folders) is None
    assert member_link(pod(), folders) == ""


def test_files_are_grouped_by_their_folders() -> None:
    files = {"/etc/mpi/hostfile": "a", "/etc/mpi/more": "b", "/etc/other/x": "c"}
    found = {volume.at: set(volume.files or ()) for volume in render_files(pod(files=files), AttemptFolders("/data"))}
    assert found == {"/etc/mpi": {"hostfile", "more"}, "/etc/other": {"x"}}
    assert render_files(pod(), AttemptFolders("/data")) == []


def test_a_volume_of_the_spec_cannot_cover_them() -> None:
    wanted = render_files(pod(files={"/etc/mpi/hostfile": "a"}), AttemptFolders("/data"))
    check_places(wanted, [Volume("folder", "/data", "storage.pvc[0]")])
    with pytest.raises(Refused, match=r"storage.pvc\[0\]"):
        check_places(wanted, [Volume("folder", "/etc/mpi", "storage.pvc[0]")])
