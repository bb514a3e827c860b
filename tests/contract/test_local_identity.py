"""Under which user and with which rights a pod of the local engine really runs, seen from inside its processes."""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.engines.base import LogRequest, PodState
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.linux.capabilities import NUMBERS, RUNTIME_DEFAULT
from fairlead.engines.local.settings import NOBODY, LocalSettings
from fairlead.model.allowed import Allowed
from fairlead.model.pods.podset import PodSpec
from tests.contract.engine_harness import clock, eventually, is_running, myself, opened, scenario, shell

Make = Callable[..., LocalEngine]
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become others")
#: Ids that no machine gives to anybody.
FREE_UID, FREE_GID, FREE_GROUP = 61_234, 61_235, 61_236


@pytest.fixture
def personal(tmp_path: Path) -> Callable[[], LocalEngine]:
    settings = LocalSettings(data_dir=str(tmp_path / "data"), owner=load_identity(myself()))
    return lambda: LocalEngine(settings, clock)


@pytest.fixture
def shared(tmp_path: Path) -> Make:
    def make(**allowed: Any) -> LocalEngine:
        run_as = NOBODY if AS_ROOT else load_identity(myself())
        settings = LocalSettings(data_dir=str(tmp_path / "data"), allowed=Allowed(**allowed), run_as=run_as)
        return LocalEngine(settings, clock)

    return make


def secured(script: str, **security: Any) -> PodSpec:
    return shell(script, fields={"security": security})


async def said(make: Callable[[], LocalEngine], spec: PodSpec) -> str:
    """What the pod wrote; it must end well."""
    async with opened(make) as harness:
        report = await harness.run(spec)
        words = (await harness.output(spec)).decode()
        assert report.exit_code == 0, (report, words)
        return words


async def refused(make: Callable[[], LocalEngine], spec: PodSpec) -> str:
    """Why the pod was not started."""
    async with opened(make) as harness:
        report = await harness.run(spec)
        assert (report.state, report.reason) == (PodState.EXITED, "StartError"), report
        return report.message


def names_in(mask: str) -> set[str]:
    value = int(mask, 16)
    return {name for name, number in NUMBERS.items() if value >> number & 1}


def status(words: str, key: str) -> str:
    return next(line.split(":", 1)[1].strip() for line in words.splitlines() if line.startswith(f"{key}:"))


class TestUser:
    CUSTOM: dict[str, Any] = {"uidGidSource": "custom", "runAsUid": FREE_UID, "runAsGid": FREE_GID}  # noqa: RUF012 - nobody changes it

    @needs_root
    @scenario
    async def test_custom_user_group_and_further_groups(self, shared: Make, personal: Make) -> None:
        spec = secured("id -u; id -g; id -G", **self.CUSTOM, supplementalGroups=f"{FREE_GROUP}, 61237")
        assert (await said(shared, spec)).split() == [
            str(FREE_UID),
            str(FREE_GID),
            str(FREE_GID),
            str(FREE_GROUP),
            "61237",
        ]
        spec = secured("id -u; id -g; id -G; test ! -w /etc/hosts", **self.CUSTOM, supplementalGroups="")
        assert (await said(personal, spec)).split() == [str(FREE_UID), str(FREE_GID), str(FREE_GID)]

    @needs_root
    @scenario
    async def test_the_pods_own_places_are_its_users(self, shared: Make) -> None:
        output = await said(shared, secured("touch ~/mine /tmp/mine && stat -c %u ~ ~/mine", **self.CUSTOM))
        assert output.split() == [str(FREE_UID), str(FREE_UID)]

    @scenario
    async def test_ids_count_with_the_source_custom_only(self, shared: Make) -> None:
        output = await said(shared, secured("id -u", runAsUid=FREE_UID, uidGidSource="fromTheImage"))
        assert output.strip() == ("65534" if AS_ROOT else str(myself()))

    @needs_root
    @pytest.mark.parametrize(
        ("security", "want"),
        [
            pytest.param({"runAsUid": 0}, "security.runAsUid: 0 is the id of root", id="root"),
            pytest.param({"runAsGid": 0}, "security.runAsGid: 0 is the id of root", id="root's group"),
            pytest.param(
                {"supplementalGroups": "0"}, "security.supplementalGroups: 0 is the id of root", id="further root"
            ),
            pytest.param({"runAsUid": 1}, "security.runAsUid: 1 belongs to a user or group", id="somebody's"),
            pytest.param({"supplementalGroups": "6"}, "security.supplementalGroups: 6 belongs", id="the disk group"),
            pytest.param({"runAsUid": -1}, "-1 is not a valid id", id="negative"),
            pytest.param({"runAsUid": 2**40}, "is not a valid id", id="too large"),
            pytest.param({"supplementalGroups": "staff"}, "whole numbers", id="a name"),
        ],
    )
    @scenario
    async def test_ids_that_a_shared_server_refuses(self, shared: Make, security: dict[str, Any], want: str) -> None:
        assert want in await refused(shared, secured("true", **{"uidGidSource": "custom", **security}))

    @needs_root
    @scenario
    async def test_ids_that_the_operator_allows(self, shared: Make) -> None:
        custom = {"uidGidSource": "custom", "runAsUid": 0, "runAsGid": 0}
        assert await said(lambda: shared(root_user=True), secured("id -u", **custom)) == "0\n"
        custom["runAsUid"] = custom["runAsGid"] = 1
        assert await said(lambda: shared(machine_users=True), secured("id -u", **custom)) == "1\n"

    @needs_root
    @scenario
    async def test_root_in_a_pod_cannot_change_the_machine(self, shared: Make) -> None:
        script = (
            "! echo x > /proc/sys/kernel/domainname && ! touch /etc/x && ! mount -t tmpfs none /mnt"
            " && ! hostname other && ! cat $DATA/fairlead.db && echo unchanged"
        )
        spec = secured(script, uidGidSource="custom", runAsUid=0, runAsGid=0)
        assert (await said(lambda: shared(root_user=True), spec)).splitlines()[-1] == "unchanged"

    @scenario
    async def test_ids_of_a_missing_token(self, shared: Make, personal: Make) -> None:
        spec = secured("id -u", uidGidSource="fromIdpToken")
        assert "the token of an identity provider, and this server has none" in await refused(shared, spec)
        # The owner of a personal server is who asks.
        assert await said(personal, spec) == f"{myself()}\n"

    @needs_root
    @scenario
    async def test_run_as_non_root(self, shared: Make, personal: Make) -> None:
        assert "would run as root" in await refused(personal, secured("true", runAsNonRoot=True))
        assert await said(shared, secured("id -u", runAsNonRoot=True)) == "65534\n"
        assert await said(personal, secured("id -u", runAsNonRoot=True, **self.CUSTOM)) == f"{FREE_UID}\n"


class TestPowers:
    STATUS = "cat /proc/self/status"

    @scenario
    async def test_a_shared_pod_has_no_capability_and_cannot_gain_one(self, shared: Make) -> None:
        output = await said(shared, secured(self.STATUS))
        assert names_in(status(output, "CapEff")) == set()
        assert names_in(status(output, "CapBnd")) <= RUNTIME_DEFAULT
        assert status(output, "NoNewPrivs") == "1"

    @needs_root
    @scenario
    async def test_capabilities_that_the_operator_allows_are_held(self, shared: Make) -> None:
        asked = ["NET_ADMIN", "SYS_NICE"]
        make = functools.partial(shared, capabilities=("NET_ADMIN", "SYS_NICE"))
        output = await said(make, secured(f"{self.STATUS} && nice -n -5 true", capabilities=asked))
        assert names_in(status(output, "CapEff")) == set(asked)
        assert names_in(status(output, "CapBnd")) == RUNTIME_DEFAULT | set(asked)

    @needs_root
    @scenario
    async def test_capabilities_that_are_not_allowed(self, shared: Make) -> None:
        why = await refused(lambda: shared(capabilities=("SYS_NICE",)), secured("true", capabilities=["NET_ADMIN"]))
        assert "--allow capability=NET_ADMIN" in why

    @needs_root
    @scenario
    async def test_all_capabilities_dropped(self, personal: Make) -> None:
        output = await said(personal, secured(self.STATUS, dropAllCapabilities=True, capabilities=["CHOWN"]))
        assert names_in(status(output, "CapEff")) == {"CHOWN"}
        assert names_in(status(output, "CapBnd")) == {"CHOWN"}

    @scenario
    async def test_privilege_escalation(self, personal: Make) -> None:
        assert status(await said(personal, secured(self.STATUS, allowPrivilegeEscalation=False)), "NoNewPrivs") == "1"
        assert status(await said(personal, secured(self.STATUS, allowPrivilegeEscalation=True)), "NoNewPrivs") == "0"

    @needs_root
    @scenario
    async def test_privilege_escalation_on_a_shared_server(self, shared: Make) -> None:
        spec = secured(self.STATUS, allowPrivilegeEscalation=True)
        assert "--allow root-user" in await refused(shared, spec)
        assert status(await said(lambda: shared(root_user=True), spec), "NoNewPrivs") == "0"


#: Tries calls that the default filter denies, and says what came of each.
CALLS = """
import ctypes, errno, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"keyctl": (250, 219), "io_uring_setup": (425, 425)}
column = 1 if __import__("os").uname().machine == "aarch64" else 0
for name, numbers in NUMBERS.items():
    result = libc.syscall(numbers[column], 0, 0, 0, 0, 0)
    print(name, errno.errorcode.get(ctypes.get_errno()) if result < 0 else "made")
print("unshare", errno.errorcode[ctypes.get_errno()] if libc.unshare(0x10000000) else "made")
thread = threading.Thread(target=print, args=("thread", "made"))
thread.start()
thread.join()
"""


class TestSeccomp:
    @staticmethod
    def spec(**security: Any) -> PodSpec:
        return shell(f"grep ^Seccomp: /proc/self/status; python3 -c '{CALLS}'", fields={"security": security})

    @scenario
    async def test_the_default_filter(self, shared: Make, personal: Make) -> None:
        for make in (shared, personal):
            arguments = (await said(make, self.spec(seccompProfileType="RuntimeDefault"))).split()
            assert arguments[:2] == ["Seccomp:", "2"]
            calls = dict(zip(arguments[2::2], arguments[3::2], strict=True))
            assert calls == {"keyctl": "EPERM", "io_uring_setup": "EPERM", "unshare": "EPERM", "thread": "made"}

    @scenario
    async def test_unconfined(self, personal: Make) -> None:
        arguments = (await said(personal, self.spec(seccompProfileType="Unconfined"))).split()
        assert arguments[:2] == ["Seccomp:", "0"]
        assert "EPERM" not in arguments[arguments.index("io_uring_setup") + 1]

    @scenario
    async def test_a_profile_of_the_machines_own(self, personal: Make) -> None:
        assert "not supported" in await refused(personal, secured("true", seccompProfileType="Localhost"))


class TestNamespaces:
    @scenario
    async def test_no_other_process_is_seen(self, shared: Make) -> None:
        output = await said(shared, secured("ls -d /proc/[0-9]* | wc -l; echo $$; kill -0 1 2>&1 || true"))
        count, own = output.split()[:2]
        # The first process, the shell, ls; whatever runs on this machine besides is not there.
        assert int(count) <= 4
        assert int(own) < 10

    @scenario
    async def test_inter_process_communication_of_its_own(self, shared: Make, personal: Make) -> None:
        here = os.readlink("/proc/self/ns/ipc")
        assert (await said(shared, secured("readlink /proc/self/ns/ipc"))).strip() != here
        assert "--allow host-namespaces" in await refused(shared, secured("true", hostIpc=True))
        allowed = functools.partial(shared, host_namespaces=True)
        assert (await said(allowed, secured("readlink /proc/self/ns/ipc", hostIpc=True))).strip() == here
        # The owner's jobs see the machine as the owner's shell does.
        assert (await said(personal, secured("readlink /proc/self/ns/ipc", hostIpc=True))).strip() == here

    @scenario
    async def test_the_machines_network(self, shared: Make) -> None:
        here = os.readlink("/proc/self/ns/net")
        assert "--allow host-namespaces" in await refused(shared, secured("true", hostNetwork=True))
        allowed = functools.partial(shared, host_namespaces=True)
        assert (await said(allowed, secured("readlink /proc/self/ns/net", hostNetwork=True))).strip() == here

    @scenario
    async def test_signals_codes_and_orphans_behind_the_first_process(self, shared: Make) -> None:
        async with opened(shared) as harness:
            spec = secured("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
            await harness.start(spec)
            async for piece in harness.engine.logs(LogRequest(pod_id=spec.pod_id, follow=True)):
                assert piece == b"ready\n"
                break
            assert (await harness.stop(spec, grace=20)).exit_code == 7
            spec = secured("exec sleep 600")
            await harness.start(spec)
            report = await harness.stop(spec, grace=20)
            assert (report.exit_code, report.signal) == (143, 15)
            spec = secured("kill -9 $$")
            assert (await harness.run(spec)).signal == 9
            spec = secured("(setsid sleep 600 & ) ; sleep 0.1; echo done")
            assert (await harness.run(spec)).exit_code == 0

    @scenario
    async def test_a_killed_supervisor_takes_the_namespace_with_it(self, shared: Make, tmp_path: Path) -> None:
        async with opened(shared) as harness:
            spec = secured("(setsid sleep 600 &) ; exec sleep 600")
            await harness.start(spec)
            journal = tmp_path / "data" / "pods" / "live" / f"{spec.pod_id}.{spec.attempt}"
            state = json.loads(journal.read_text().splitlines()[-1])
            assert is_running(state["main"])
            os.kill(state["pid"], 9)
            await harness.until(spec, PodState.LOST)
            await eventually(lambda: not is_running(state["main"]), "the command is gone")
