"""Volumes of the local engine, each property seen from inside the running process."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import DropClaims, DropEphemeralClaims, PodState, Refresh, Retain, Start
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.allowed import Allowed
from fairlead.model.pods.podset import PodSpec
from fairlead.model.pods.supplies import Supplies
from tests.contract.engine_harness import clock, opened, scenario, shell
from tests.contract.storage_engine import (
    AS_ROOT,
    call,
    claim,
    engine_maker,
    exists,
    fail,
    files_with,
    has_nfs,
    nothing_left,
    personal,
    say,
)
from tests.contract.test_local_engine import said

needs_root = pytest.mark.skipif(not AS_ROOT, reason="needs root")
SECRETS = {"token": {"key": "hush", "other": "two"}}
MAPS = {"settings": {"a.conf": "x=1", "b.conf": "y=2"}}
MODES = [pytest.param({}, id="shared"), pytest.param(personal(), id="personal")]


@pytest.fixture
def data() -> Iterator[Path]:
    """Not below /tmp, which shared pods have of their own."""
    folder = Path(call("mktemp", "-d", "/var/tmp/fairlead-volumes-XXXXXX").strip())
    folder.chmod(0o755)
    yield folder / "data"
    # A fork server that is just leaving may still touch its files.
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("mode", MODES)
class TestBothModes:
    @scenario
    async def test_empty_dir_path(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, **mode)) as harness:
            volumes = [{"path": "/no/such/place"}, {"path": "/usr/share/scratch"}]
            script = "ls -A /no/such/place /usr/share/scratch; touch /no/such/place/x /usr/share/scratch/y && echo ok"
            said_words = await say(harness, script, storage={"emptyDirVolume": volumes})
            assert said_words.endswith("ok\n")
            assert not exists("/no")
            assert not exists("/usr/share/scratch")
        await nothing_left(data)

    @scenario
    async def test_empty_dir_medium_and_its_size(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, **mode)) as harness:
            volumes = [{"path": "/quick", "medium": "Memory", "sizeLimit": "1Mi"}]
            script = "stat -f -c %T /quick; head -c 3000000 /dev/zero > /quick/big; stat -c %s /quick/big"
            assert await say(harness, script, storage={"emptyDirVolume": volumes}) == (
                "tmpfs\nhead: error writing 'standard output': No space left on device\n1048576\n"
            )

    @needs_root
    @scenario
    async def test_empty_dir_size_limit_is_a_file_system_of_that_size(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, **mode)) as harness:
            volumes = [{"path": "/bounded", "sizeLimit": "8Mi"}]
            script = (
                "ls -A /bounded; head -c 20000000 /dev/zero > /bounded/big; test $(stat -c %s /bounded/big) -lt 8388608"
            )
            output = await say(harness, script, storage={"emptyDirVolume": volumes})
            assert output == "head: error writing 'standard output': No space left on device\n"
        await nothing_left(data)

    @scenario
    async def test_config_map_volume_its_sub_path_and_mode(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, Supplies(config_maps=MAPS), **mode)) as harness:
            volumes = [
                {"configMap": "settings", "mountPath": "/conf", "defaultMode": "0440"},
                {"configMap": "settings", "mountPath": "/usr/share/one.conf", "subPath": "b.conf"},
            ]
            script = "cd /conf; stat -L -c '%n %a' *; cat * /usr/share/one.conf; touch new 2>&1 | grep -o Read-only"
            output = await say(harness, script, storage={"configMapVolume": volumes})
            assert output == "a.conf 440\nb.conf 440\nx=1y=2y=2Read-only\n"

    @pytest.mark.parametrize("entry", ["/etc/passwd", "../../etc/passwd", "a.conf/../../x", "..data", "none"])
    @scenario
    async def test_a_sub_path_names_an_entry_and_nothing_else(
        self, data: Path, mode: dict[str, Any], entry: str
    ) -> None:
        item = {"configMap": "settings", "mountPath": "/only", "subPath": entry}
        async with opened(engine_maker(data, Supplies(config_maps=MAPS), **mode)) as harness:
            assert f"has no entry '{entry}'" in await fail(harness, storage={"configMapVolume": [item]})

    @scenario
    async def test_config_map_and_secret_volumes_follow_changes(self, data: Path, mode: dict[str, Any]) -> None:
        """All at once, without a restart, whichever server gives the word; files that went are gone."""
        kept = {"token": {"key": "old"}}

        async def load(spec: PodSpec) -> Supplies:
            return Supplies(config_maps=MAPS, secrets=kept)

        settings = LocalSettings(data_dir=str(data), **mode)
        storage = {
            "secretVolume": [{"secret": "token", "mountPath": "/followed", "defaultMode": "0400"}],
            "configMapVolume": [{"configMap": "settings", "mountPath": "/settings"}],
        }
        script = "until test -e /followed/more; do sleep 0.02; done; ls /followed; cat /followed/more /settings/a.conf"
        async with opened(lambda: LocalEngine(settings, clock, supplies=load)) as harness:
            spec = shell(
                script + "; stat -L -c ' %a %U' /followed/more; id -un; touch /followed/x", fields={"storage": storage}
            )
            await harness.start(spec)
            await harness.reopen()
            await harness.until(spec, PodState.RUNNING)
            kept["token"] = {"more": "new "}
            await harness.engine.apply([Refresh(spec)])
            assert (await harness.until(spec, PodState.EXITED)).exit_code == 1
            arguments = (await harness.output(spec)).decode().split()
            assert arguments[:4] == ["more", "new", "x=1", "400"]
            assert arguments[4] == arguments[5]
            assert "Read-only" in arguments

    @scenario
    async def test_secret_volume_is_in_memory_and_for_the_pod_alone(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, Supplies(secrets=SECRETS), **mode)) as harness:
            volumes = [{"secret": "token", "mountPath": "/run-secrets/t", "defaultMode": "0400"}]
            script = "cd /run-secrets/t; stat -f -c %T .; stat -L -c '%n %a %u' *; test $(cat key) = hush; id -u"
            output = await say(harness, script, storage={"secretVolume": volumes})
            user = output.split()[-1]
            assert output == f"tmpfs\nkey 400 {user}\nother 400 {user}\n{user}\n"
            assert files_with(data, "hush") == []

    @scenario
    async def test_claim_is_shared_by_pods_and_outlives_them(self, data: Path, mode: dict[str, Any]) -> None:
        supplies = Supplies(claims={0: claim("weights", size_bytes=16_000_000)})
        async with opened(engine_maker(data, supplies, **mode)) as harness:
            mount = {"storage": {"pvc": [{"path": "/weights"}]}}
            first = shell(
                "echo one > /weights/a; echo ready; until [ -e /weights/b ]; do sleep 0.02; done", fields=mount
            )
            await harness.start(first)
            await said(harness, first, b"ready")
            assert await say(harness, "cat /weights/a; touch /weights/b", **mount) == "one\n"
            assert (await harness.until(first, PodState.EXITED)).exit_code == 0
            await nothing_left(data)
            assert await say(harness, "ls /weights", **mount) == "a\nb\n"
            read_only = {"storage": {"pvc": [{"path": "/weights", "readOnly": True}]}}
            assert (
                await say(harness, "cat /weights/a; rm /weights/a 2>&1 | grep -o Read-only", **read_only)
                == "one\nRead-only\n"
            )
            await harness.engine.apply([DropClaims(frozenset({"id-of-weights"}))])
            assert list((data / "claims").iterdir()) == []

    @scenario
    async def test_claim_access_modes_read_only_many(self, data: Path, mode: dict[str, Any]) -> None:
        supplies = Supplies(claims={0: claim("papers", read_only=True)})
        async with opened(engine_maker(data, supplies, **mode)) as harness:
            storage = {"pvc": [{"path": "/papers"}]}
            assert await say(harness, "touch /papers/x 2>&1 | grep -o Read-only", storage=storage) == "Read-only\n"

    @scenario
    async def test_ephemeral_claim_is_the_workloads_own_until_it_stops(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, **mode)) as harness:
            storage = {"pvc": [{"path": "/cache", "ephemeral": True, "claimInfo": {"size": "16M"}}]}
            first = shell("echo kept > /cache/x", fields={"storage": storage})
            await harness.run(first)
            other = await harness.run(shell("ls /cache/x", fields={"storage": storage}))
            assert other.exit_code != 0
            await harness.engine.apply([DropEphemeralClaims(first.workload_id)])
            left = [folder.name for folder in (data / "claims").iterdir()]
            assert len(left) == 1
            assert not left[0].startswith(first.workload_id)

    @scenario
    async def test_data_volume_is_the_shared_claim_read_only(self, data: Path, mode: dict[str, Any]) -> None:
        supplies = Supplies(
            claims={0: claim("corpus")},
            data_volumes={"one": claim("corpus", read_only=True)},
        )
        async with opened(engine_maker(data, supplies, **mode)) as harness:
            await say(harness, "echo text > /corpus/book", storage={"pvc": [{"path": "/corpus"}]})
            storage = {"dataVolume": [{"id": "one", "mountPath": "/shared"}]}
            script = "cat /shared/book; touch /shared/x 2>&1 | grep -o Read-only"
            assert await say(harness, script, storage=storage) == "text\nRead-only\n"

    @scenario
    async def test_working_dir_is_made_in_a_volume(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, **mode)) as harness:
            storage = {"emptyDirVolume": [{"path": "/scratch"}]}
            assert await say(harness, "pwd", workingDir="/scratch/a/b", storage=storage) == "/scratch/a/b\n"
            assert not exists("/scratch/a")

    @scenario
    async def test_volumes_within_volumes(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, Supplies(config_maps=MAPS), **mode)) as harness:
            storage = {
                "emptyDirVolume": [{"path": "/outer"}, {"path": "/outer/in/ner", "medium": "Memory"}],
                "configMapVolume": [{"configMap": "settings", "mountPath": "/outer/one", "subPath": "a.conf"}],
            }
            script = "find /outer -mindepth 1 | sort; stat -f -c %T /outer/in/ner; cat /outer/one"
            assert await say(harness, script, storage=storage) == ("/outer/in\n/outer/in/ner\n/outer/one\ntmpfs\nx=1")

    @scenario
    async def test_links_in_a_claim_lead_nowhere(self, data: Path, mode: dict[str, Any]) -> None:
        async with opened(engine_maker(data, Supplies(claims={0: claim("traps")}), **mode)) as harness:
            await say(harness, "ln -s /etc /traps/out; ln -s / /traps/root", storage={"pvc": [{"path": "/traps"}]})
            storage = {"pvc": [{"path": "/traps"}], "emptyDirVolume": [{"path": "/traps/out/deeper"}]}
            message = await fail(harness, storage=storage)
            assert "storage.emptyDirVolume[0]" in message
            assert "symbolic links" in message
            assert not exists("/etc/deeper")

    @scenario
    @pytest.mark.parametrize("path", ["relative", "/a/../etc", "/", "/proc/x", "/dev", "//"])
    async def test_paths_that_no_volume_may_have(self, data: Path, mode: dict[str, Any], path: str) -> None:
        async with opened(engine_maker(data, **mode)) as harness:
            assert "storage.emptyDirVolume[0]" in await fail(harness, storage={"emptyDirVolume": [{"path": path}]})


class TestShared:
    @scenario
    async def test_shared_memory_is_small_unless_asked_for(self, data: Path) -> None:
        async with opened(engine_maker(data)) as harness:
            script = "stat -f -c '%b %S' /dev/shm"
            blocks, size = map(int, (await say(harness, script)).split())
            assert blocks * size == 64 * 1024 * 1024
            blocks, size = map(int, (await say(harness, script, compute={"largeShmRequest": True})).split())
            assert blocks * size > 64 * 1024 * 1024

    @scenario
    async def test_create_home_dir(self, data: Path) -> None:
        async with opened(engine_maker(data)) as harness:
            assert await say(harness, "cd; pwd; touch x && ls", createHomeDir=True) == "/home/fairlead\nx\n"

    @scenario
    async def test_host_path_below_an_allowed_folder_only(self, data: Path, tmp_path: Path) -> None:
        folder = data.parent / "allowed"
        (folder / "in").mkdir(parents=True)
        (folder / "in" / "file").write_text("seen")
        (folder / "out").symlink_to("/etc")
        async with opened(engine_maker(data, allowed=Allowed(host_paths=(str(folder),)))) as harness:
            storage = {"hostPath": [{"path": f"{folder}/in", "mountPath": "/here"}]}
            script = "cat /here/file; touch /here/x 2>&1 | grep -o Read-only"
            assert await say(harness, script, storage=storage) == "seenRead-only\n"
            for path in ("/etc", f"{folder}/../secret", f"{folder}-beside"):
                words = await fail(harness, storage={"hostPath": [{"path": path, "mountPath": "/here"}]})
                assert "storage.hostPath[0].path" in words
            words = await fail(harness, storage={"hostPath": [{"path": f"{folder}/out", "mountPath": "/here"}]})
            assert f"({folder}/out): a link in it leads outside {folder}, the allowed folder" in words

    @scenario
    async def test_host_path_never_shows_the_data_folder(self, data: Path) -> None:
        async with opened(engine_maker(data, allowed=Allowed(host_paths=("/",)))) as harness:
            storage = {"hostPath": [{"path": "/", "mountPath": "/machine"}]}
            assert (
                await say(harness, f"ls -A /machine{data} 2>/dev/null; ls -d /machine/etc", storage=storage)
                == "/machine/etc\n"
            )
            message = await fail(harness, storage={"hostPath": [{"path": f"{data}/pods", "mountPath": "/here"}]})
            assert "data folder" in message

    @needs_root
    @scenario
    async def test_host_path_read_only_false(self, data: Path) -> None:
        folder = data.parent / "open"
        folder.mkdir()
        folder.chmod(0o777)
        async with opened(engine_maker(data, allowed=Allowed(host_paths=(str(folder),)))) as harness:
            storage = {"hostPath": [{"path": str(folder), "mountPath": "/here", "readOnly": False}]}
            await say(harness, "echo written > /here/x", storage=storage)
        assert (folder / "x").read_text() == "written\n"

    @needs_root
    @pytest.mark.parametrize(("propagation", "want"), [("HostToContainer", "late"), ("None", "")])
    @scenario
    async def test_host_path_mount_propagation(self, data: Path, propagation: str, want: str) -> None:
        folder = data.parent / "mounts"
        (folder / "later").mkdir(parents=True)
        call("mount", "--bind", folder, folder)
        call("mount", "--make-shared", folder)
        try:
            async with opened(engine_maker(data, allowed=Allowed(host_paths=(str(folder),)))) as harness:
                item = {"path": str(folder), "mountPath": "/here", "mountPropagation": propagation}
                script = "echo ready; until [ -e /here/go ]; do sleep 0.02; done; ls /here/later"
                spec = shell(script, fields={"storage": {"hostPath": [item]}})
                await harness.start(spec)
                await said(harness, spec, b"ready")
                call("mount", "-t", "tmpfs", "none", folder / "later")
                (folder / "later" / "late").touch()
                (folder / "go").touch()
                await harness.until(spec, PodState.EXITED)
                assert (await harness.output(spec)).decode().split() == ["ready", *want.split()]
        finally:
            call("umount", "-R", folder)

    @scenario
    async def test_nfs_without_a_client_in_the_kernel_is_refused(self, data: Path) -> None:
        if has_nfs():
            pytest.skip("this kernel has NFS")
        async with opened(engine_maker(data)) as harness:
            storage = {"nfs": [{"server": "files", "path": "/export", "mountPath": "/nfs"}]}
            assert "storage.nfs[0]: NFS cannot be mounted here" in await fail(harness, storage=storage)


class TestWorkingDirectory:
    """One that this machine does not have is made where the pod is isolated, for it alone."""

    @scenario
    async def test_it_is_made_for_the_pod_alone(self, data: Path) -> None:
        async with opened(engine_maker(data)) as harness:
            script = "pwd; ls -A; echo text > mine && cat mine; stat -c %u . | grep -qx $(id -u) && echo own"
            for place in ("/no/such/place", "/etc/no/such", "/usr/share/no-such"):
                assert await say(harness, script, workingDir=place) == f"{place}\ntext\nown\n"
                assert not exists(place)

    @scenario
    async def test_what_is_there_is_left_as_it_is(self, data: Path) -> None:
        async with opened(engine_maker(data)) as harness:
            assert "passwd" in (await say(harness, "ls", workingDir="/etc")).split()
            assert "wrote" not in await say(harness, "touch x 2>/dev/null && echo wrote; true", workingDir="/usr/share")

    @scenario
    async def test_what_cannot_be_made_is_said(self, data: Path) -> None:
        async with opened(engine_maker(data)) as harness:
            for place in ("/proc/no/such", "/etc/passwd"):
                report = await harness.run(shell("pwd", working_dir=place))
                assert report.reason == "StartError"
                assert f"cannot enter the working directory '{place}'" in report.message

    @scenario
    async def test_without_isolation_it_must_be_there(self, data: Path) -> None:
        async with opened(engine_maker(data, **personal())) as harness:
            assert "'/no/such'" in (await harness.run(shell("pwd", working_dir="/no/such"))).message
            assert not exists("/no")


class TestPersonal:
    @scenario
    async def test_the_machine_stays_in_sight_and_can_be_written(self, data: Path, tmp_path: Path) -> None:
        async with opened(engine_maker(data, **personal())) as harness:
            storage = {"emptyDirVolume": [{"path": "/scratch"}]}
            await say(harness, f"touch {tmp_path}/x; test -d /scratch; test -d {data}/pods", storage=storage)
            assert (tmp_path / "x").exists()

    @scenario
    async def test_create_home_dir(self, data: Path) -> None:
        async with opened(engine_maker(data, **personal())) as harness:
            assert await say(harness, "cd; pwd; ls -A; touch x", createHomeDir=True) == "/home/runai-home\n"

    @scenario
    async def test_host_path_is_any_of_the_owners(self, data: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine")
        async with opened(engine_maker(data, **personal())) as harness:
            storage = {"hostPath": [{"path": str(tmp_path), "mountPath": "/here"}]}
            assert (
                await say(harness, "cat /here/file; touch /here/x 2>&1 | grep -o Read-only", storage=storage)
                == "mineRead-only\n"
            )


class TestSizes:
    @scenario
    async def test_a_claim_that_is_only_watched_evicts_its_pod(self, data: Path) -> None:
        """As without root: a folder that is there already stays one."""
        (data / "claims" / "id-of-logs" / "data").mkdir(parents=True)
        supplies = Supplies(claims={0: claim("logs", size_bytes=1_000_000)})
        async with opened(engine_maker(data, supplies, gauge_seconds=0.05, **personal())) as harness:
            script = "head -c 3000000 /dev/zero > /logs/big; sleep 600"
            report = await harness.run(shell(script, fields={"storage": {"pvc": [{"path": "/logs"}]}}))
            assert report.reason == "Evicted"
            assert re.fullmatch(r"storage\.pvc\[0\] holds [1-3]\d{6} bytes, its size is 1000000", report.message)


class TestClaims:
    @scenario
    async def test_unknown_leftovers_are_removed_at_the_start(self, data: Path) -> None:
        supplies = Supplies(claims={0: claim("made", workload_id="gone"), 1: claim("kept"), 2: claim("mine")})
        async with opened(engine_maker(data, supplies)) as harness:
            items = [{"path": "/a"}, {"path": "/b"}, {"path": "/c"}, {"path": "/d", "ephemeral": True}]
            await say(harness, "true", storage={"pvc": items})
            await harness.engine.apply([Retain(frozenset({"id-of-kept"}), frozenset())])
            left = sorted(folder.name for folder in (data / "claims").iterdir())
            assert left == ["id-of-kept", "id-of-mine"]

    @scenario
    async def test_storage_class_chooses_the_folder(self, data: Path) -> None:
        fast = data.parent / "fast"
        supplies = Supplies(claims={0: claim("quick", storage_class="fast")})
        async with opened(engine_maker(data, supplies, storage_classes=(("fast", str(fast)),))) as harness:
            await say(harness, "touch /quick/x", storage={"pvc": [{"path": "/quick"}]})
            assert os.listdir(fast / "id-of-quick" / "data") == ["x"]

    @scenario
    async def test_annotations_are_kept_with_the_claim(self, data: Path) -> None:
        supplies = Supplies(claims={0: claim("noted", attributes={"tier": "gold"})})
        async with opened(engine_maker(data, supplies)) as harness:
            await say(harness, "true", storage={"pvc": [{"path": "/noted"}]})
            assert '"tier": "gold"' in (data / "claims" / "id-of-noted" / "claim.json").read_text()


@scenario
async def test_claim_read_write_once_is_mounted_on_one_node_at_a_time(data: Path) -> None:
    """A pod on another node waits, says for what, and starts when the last pod on the first node has ended."""
    supplies = Supplies(claims={0: claim("single", is_for_one_node=True)})
    storage = {"pvc": [{"path": "/claimed"}]}

    def on(node: str, script: str) -> PodSpec:
        return msgspec.structs.replace(shell(script, fields={"storage": storage}), node=node)

    async with opened(engine_maker(data, supplies)) as harness:
        first, beside, other, never = (on(node, "sleep 600") for node in ("one", "one", "two", "two"))
        await harness.start(first)
        assert (await harness.start(beside)).state is PodState.RUNNING
        await harness.stop(first)
        # What comes back knows who mounts it.
        await harness.reopen()
        await harness.until(beside, PodState.RUNNING)
        await harness.engine.apply([Start(other), Start(never)])
        waiting = await harness.until(other, PodState.STARTING)
        assert "claim single" in waiting.message
        assert "node one" in waiting.message
        assert (await harness.stop(never)).reason == "StartError"
        await harness.stop(beside)
        assert (await harness.until(other, PodState.RUNNING)).state is PodState.RUNNING
