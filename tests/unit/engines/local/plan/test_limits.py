"""How limits are planned, in both layouts of control groups and without any."""

import os
import struct
from pathlib import Path

import pytest

from fairlead.engines.local.linux import cgroups, seccomp
from fairlead.engines.local.linux.cgroups import CgroupLimits, CgroupPlan, Groups
from fairlead.engines.local.plan.limits import MAX_PIDS, LimitSupport, decide_pids, remarks, render_limits
from fairlead.model.pods.podset import PodContainer

OLDER = Groups(1, {"cpu": "/c/cpu", "memory": "/c/memory", "pids": "/c/pids"})
NEWER = Groups(2, dict.fromkeys(("cpu", "memory", "pids"), "/c/ours"))


def test_the_older_layout_has_a_folder_for_each() -> None:
    plan = cgroups.plan(OLDER, "p.1", CgroupLimits(1500, 4096, 10))
    assert plan is not None
    assert plan.folders == {name: f"/c/{name}/fairlead-p.1" for name in ("cpu", "memory", "pids")}
    writes = {path: text for path, text, must in plan.writes if must}
    assert writes == {
        "/c/cpu/fairlead-p.1/cpu.cfs_period_us": "100000",
        "/c/cpu/fairlead-p.1/cpu.cfs_quota_us": "150000",
        "/c/memory/fairlead-p.1/memory.limit_in_bytes": "4096",
        "/c/pids/fairlead-p.1/pids.max": "10",
    }


def test_the_newer_layout_has_one_folder() -> None:
    plan = cgroups.plan(NEWER, "p.1", CgroupLimits(500, 4096, None))
    assert plan is not None
    assert set(plan.folders.values()) == {"/c/ours/fairlead-p.1"}
    writes = {path.rpartition("/")[2]: text for path, text, _ in plan.writes}
    assert writes == {
        "cpu.max": "50000 100000",
        "memory.max": "4096",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
    }


def test_no_limits_no_groups() -> None:
    assert cgroups.plan(OLDER, "p.1", CgroupLimits()) is None
    assert cgroups.plan(Groups(1, {"pids": "/c/pids"}), "p.1", CgroupLimits(cpu_milli=1)) is None


def test_a_quota_is_never_shorter_than_the_kernel_takes() -> None:
    plan = cgroups.plan(NEWER, "p.1", CgroupLimits(cpu_milli=1))
    assert plan is not None
    assert plan.writes[0][1] == "1000 100000"


def newer_tree(root: Path, members: str) -> Path:
    """A folder that looks like the newer layout, with our group in it."""
    own = root / "ours"
    own.mkdir()
    for folder in (root, own):
        (folder / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
        (folder / "cgroup.subtree_control").write_text("")
        (folder / "cgroup.procs").write_text("")
    (own / "cgroup.procs").write_text(members)
    (root / "membership").write_text("0::/ours\n")
    return own


def test_the_newer_layout_makes_room_for_groups(tmp_path: Path) -> None:
    own = newer_tree(tmp_path, f"{os.getpid()}\n")
    observed = cgroups.observe(str(tmp_path), str(tmp_path / "membership"))
    assert observed == Groups(2, dict.fromkeys(("cpu", "memory", "pids"), str(own)))
    assert (own / "fairlead.server" / "cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_processes_of_others_are_not_moved(tmp_path: Path) -> None:
    own = newer_tree(tmp_path, f"{os.getpid()}\n1\n")
    aside = tmp_path / "fairlead"
    aside.mkdir()
    (aside / "cgroup.controllers").write_text("memory pids\n")
    (aside / "cgroup.subtree_control").write_text("memory pids\n")
    observed = cgroups.observe(str(tmp_path), str(tmp_path / "membership"))
    assert observed == Groups(2, dict.fromkeys(("memory", "pids"), str(aside)))
    assert not (own / "fairlead.server").exists()


def test_groups_of_a_services_pods_lie_beside_the_service(tmp_path: Path) -> None:
    """Beside all others where that can be written, otherwise beside the service in its slice."""
    service = tmp_path / "ours" / "fairlead.service"
    newer_tree(tmp_path, "")
    service.mkdir()
    (service / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (tmp_path / "membership").write_text("0::/ours/fairlead.service\n")
    for aside, want in ((tmp_path / "ours" / "fairlead", ["memory"]), (tmp_path / "fairlead", ["memory", "pids"])):
        aside.mkdir(exist_ok=True)
        (aside / "cgroup.controllers").write_text(" ".join(want))
        (aside / "cgroup.subtree_control").write_text("")
        observed = cgroups.observe(str(tmp_path), str(tmp_path / "membership"))
        assert observed == Groups(2, dict.fromkeys(want, str(aside)))
    assert not (service / "fairlead.server").exists()


def test_the_hybrid_layout_counts_as_the_older(tmp_path: Path) -> None:
    (tmp_path / "memory" / "mine").mkdir(parents=True)
    (tmp_path / "memory" / "mine" / "cgroup.procs").touch()
    (tmp_path / "membership").write_text("4:memory:/mine\n3:freezer:/\n0::/\n")
    observed = cgroups.observe(str(tmp_path), str(tmp_path / "membership"))
    assert observed == Groups(1, {"memory": str(tmp_path / "memory" / "mine")})


def test_what_others_left_is_removed_when_it_is_old_and_empty(tmp_path: Path) -> None:
    for name in ("fairlead-a.1", "fairlead-b.1", "somebody"):
        (tmp_path / name).mkdir()
    (tmp_path / "fairlead-b.1" / "child").mkdir()
    made = (tmp_path / "fairlead-a.1").stat().st_mtime
    groups = Groups(1, {"pids": str(tmp_path)})
    cgroups.sweep_all(groups, made + 1)
    assert len(list(tmp_path.iterdir())) == 3
    cgroups.sweep_all(groups, made + 3600)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fairlead-b.1", "somebody"]


@pytest.mark.parametrize(
    ("version", "name", "text", "want"),
    [
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", False),
        (2, "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n", True),
        (2, "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n", False),
    ],
)
def test_who_ran_out_of_memory(tmp_path: Path, version: int, name: str, text: str, want: bool) -> None:
    (tmp_path / name).write_text(text)
    assert cgroups.is_out_of_memory(CgroupPlan(version, {"memory": str(tmp_path)}, ())) is want


def test_without_groups_the_conditions_say_what_is_done_instead() -> None:
    container = PodContainer(image="", cpu_limit_milli=1500, memory_limit_bytes=9)
    notes = dict(remarks(container, LimitSupport(cores=(0, 1, 2, 3))))
    assert "2 whole cores by affinity" in notes["compute.cpuCoreLimit"]
    assert "four times a second" in notes["compute.cpuMemoryLimit"]
    assert remarks(container, LimitSupport(groups=OLDER)) == []
    assert remarks(PodContainer(image=""), LimitSupport()) == []


def test_affinity_goes_round() -> None:
    limits = render_limits("p.1", PodContainer(image="", cpu_limit_milli=2500), None, LimitSupport(cores=(3, 5, 7, 9)))
    assert len(set(limits.affinity or ())) == 3
    assert limits.priority is None
    assert limits.groups is None
    starts = [
        render_limits(str(n), PodContainer(image="", cpu_limit_milli=100), None, LimitSupport(cores=(3, 5))).affinity
        for n in range(20)
    ]
    assert {tuple(each or ()) for each in starts} == {(3,), (5,)}


def test_processes_of_one_pod() -> None:
    assert decide_pids(None, False, LimitSupport()) is None
    assert decide_pids(None, True, LimitSupport()) == MAX_PIDS
    assert decide_pids(None, True, LimitSupport(threads=100)) == 50
    assert decide_pids(0, True, LimitSupport()) is None
    assert decide_pids(7, False, LimitSupport()) == 7


class TestFilter:
    def test_every_way_through_the_program_ends(self) -> None:
        for machine in seccomp.ARCHITECTURES:
            program = list(struct.iter_unpack("=HBBI", seccomp.render(machine)))
            for place, (code, yes, no, _) in enumerate(program):
                if code & 0x07 == 0x05:
                    assert place + 1 + max(yes, no) < len(program)
            assert program[-1][0] == 0x06

    def test_a_capability_opens_its_calls(self) -> None:
        closed, opened = seccomp.denied("x86_64", ()), seccomp.denied("x86_64", ("SYS_ADMIN",))
        assert 165 in closed  # mount
        assert 165 not in opened
        assert 248 in opened  # add_key

    @pytest.mark.parametrize(
        ("number", "argument", "want"),
        [
            pytest.param(0, 0, "allow", id="read"),
            pytest.param(165, 0, "deny", id="mount"),
            pytest.param(56, 0x11, "allow", id="fork"),
            pytest.param(56, 0x10000011, "deny", id="a user namespace"),
            pytest.param(435, 0, "absent", id="clone3"),
            pytest.param(0x40000000, 0, "absent", id="the x32 calls"),
        ],
    )
    def test_what_becomes_of_a_call(self, number: int, argument: int, want: str) -> None:
        names = {0x7FFF0000: "allow", 0x00050001: "deny", 0x00050026: "absent"}
        data = {0: number, 4: 0xC000003E, 16: argument}
        assert names[run(seccomp.render("x86_64"), data)] == want
        assert names[run(seccomp.render("x86_64"), {**data, 4: 0x40000003})] == "absent"


def run(program: bytes, data: dict[int, int]) -> int:
    """The kernel's filter machine, as far as these programs need it."""
    instructions = list(struct.iter_unpack("=HBBI", program))
    place, held = 0, 0
    while True:
        code, yes, no, value = instructions[place]
        place += 1
        if code == 0x20:
            held = data[value]
        elif code == 0x06:
            return int(value)
        else:
            is_so = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            place += yes if is_so else no
