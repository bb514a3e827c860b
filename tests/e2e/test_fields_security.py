"""Every security field of a training has its effect, seen from inside, or fails the workload before its start."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.engines.local.linux.capabilities import NUMBERS
from tests.e2e.fields import conditions, look, refuse
from tests.e2e.server import Server

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become others")
#: Ids that no machine gives to anybody.
UID, GID, GROUP = 61_234, 61_235, 61_236
CUSTOM = {"uidGidSource": "custom", "runAsUid": UID, "runAsGid": GID}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A shared server that allows nothing."""
    server = Server(tmp_path_factory.mktemp("shared") / "data", "--retry-delay", "20").start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A shared server whose operator allows much."""
    words = ("root-user", "host-namespaces", "machine-users", "capability=SYS_NICE", "capability=NET_ADMIN")
    flags = [flag for word in words for flag in ("--allow", word)]
    server = Server(tmp_path_factory.mktemp("open") / "data", "--retry-delay", "20", *flags).start()
    yield server
    server.close()


def held(words: str) -> set[str]:
    return {name for name, number in NUMBERS.items() if int(words, 16) >> number & 1}


@needs_root
def test_run_as_uid(shared: Server) -> None:
    assert look(shared, "uid", "id -u", security=CUSTOM) == str(UID)
    assert "0 is the id of root" in refuse(shared, "uid-root", security={**CUSTOM, "runAsUid": 0})


@needs_root
def test_run_as_gid(shared: Server) -> None:
    assert look(shared, "gid", "id -g; touch ~/file; stat -c %g ~/file", security=CUSTOM).split() == [str(GID)] * 2
    assert "0 is the id of root" in refuse(shared, "gid-root", security={**CUSTOM, "runAsGid": 0})


@needs_root
def test_supplemental_groups(shared: Server) -> None:
    security = {**CUSTOM, "supplementalGroups": f"{GROUP},61237"}
    assert look(shared, "groups", "id -G", security=security) == f"{GID} {GROUP} 61237"
    assert "0 is the id of root" in refuse(shared, "groups-root", security={**CUSTOM, "supplementalGroups": "0"})


@needs_root
def test_uid_gid_source(shared: Server) -> None:
    # From the image means, without an image, the user that the server gives to pods.
    assert look(shared, "source", "id -u", security={"uidGidSource": "fromTheImage"}) == "65534"
    assert "identity provider" in refuse(shared, "source-token", security={"uidGidSource": "fromIdpToken"})
    ignored = shared.run("source-ignored", "/bin/true", security={"runAsUid": UID})
    shared.until_phase(ignored, "Completed")
    assert "uidGidSource custom only" in conditions(shared, ignored, "NotEnforced")["security.runAsUid"]


@needs_root
def test_run_as_non_root(shared: Server, server: Server) -> None:
    assert look(shared, "non-root", "id -u", security={"runAsNonRoot": True}) == "65534"
    assert "would run as root" in refuse(server, "non-root", security={"runAsNonRoot": True})


def test_read_only_root_filesystem(shared: Server) -> None:
    script = "for place in / /tmp /etc ~; do touch $place/file 2>/dev/null && echo $place; done; touch /dev/shm/file"
    assert look(shared, "read-only", script, security={"readOnlyRootFilesystem": True}) == ""
    assert "/tmp" in look(shared, "read-only-not", script).split()


@needs_root
def test_capabilities(shared: Server, open_server: Server) -> None:
    script = "grep CapEff /proc/self/status | cut -f2; nice -n -5 true"
    output = look(open_server, "capabilities", script, security={"capabilities": ["SYS_NICE", "NET_ADMIN"]})
    assert held(output) == {"SYS_NICE", "NET_ADMIN"}
    why = refuse(shared, "capabilities", security={"capabilities": ["SYS_NICE"]})
    assert "--allow capability=SYS_NICE" in why
    assert why.startswith("spec.security.capabilities: "), "it is refused at submission, not at its start"


def test_allow_privilege_escalation(shared: Server, server: Server) -> None:
    script = "grep NoNewPrivs /proc/self/status | cut -f2"
    assert look(server, "no-gain", script, security={"allowPrivilegeEscalation": False}) == "1"
    assert look(server, "gain", script, security={"allowPrivilegeEscalation": True}) == "0"
    assert "allowPrivilegeEscalation" in refuse(shared, "gain", security={"allowPrivilegeEscalation": True})


@pytest.mark.parametrize(("profile", "want"), [("RuntimeDefault", "2"), ("Unconfined", "0")])
def test_seccomp_profile_type(shared: Server, profile: str, want: str) -> None:
    security: dict[str, Any] = {"seccompProfileType": profile}
    script = "grep Seccomp: /proc/self/status | cut -f2; unshare --user true 2>/dev/null && echo made || echo denied"
    mode, tried = look(shared, f"seccomp-{profile.lower()}", script, security=security).split()
    assert mode == want
    if profile == "RuntimeDefault":
        assert tried == "denied"


@needs_root
def test_host_ipc(shared: Server, open_server: Server) -> None:
    here, script = os.readlink("/proc/self/ns/ipc"), "readlink /proc/self/ns/ipc"
    assert look(shared, "ipc", script) != here
    assert look(open_server, "ipc", script, security={"hostIpc": True}) == here
    assert "--allow host-namespaces" in refuse(shared, "ipc-not", security={"hostIpc": True})


@needs_root
def test_host_network(shared: Server, open_server: Server) -> None:
    here, script = os.readlink("/proc/self/ns/net"), "readlink /proc/self/ns/net"
    ports = [{"container": 8080, "serviceType": "ClusterIP"}]
    assert look(open_server, "network-own", script, ports=ports) != here
    assert look(open_server, "network", script, security={"hostNetwork": True}, ports=ports) == here
    assert "--allow host-namespaces" in refuse(shared, "network-not", security={"hostNetwork": True})
