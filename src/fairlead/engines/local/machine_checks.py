"""What `doctor` finds out about this machine: kernel, isolation, limits, GPUs, runtimes, disk, clock.

`observe_machine_facts` asks, and the `judge_…` functions conclude from its answers only. Nothing is changed:
namespaces are tried in a child process that ends at once.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead.engines.local.linux import cgroups, nvml, seccomp, small_files, syscalls
from fairlead.engines.local.plan.container import RUNTIMES
from fairlead.engines.local.plan.environment import PATH
from fairlead.model.finding import RESTART, Finding
from fairlead.model.records.organization import GpuDevice

#: The first kernel with all system calls that isolation and volumes use (mount_setattr).
OLDEST_KERNEL = (5, 12)
GIBIBYTE = 1 << 30
_NVIDIA, _DISPLAY = "0x10de", "0x03"
_SECONDS = 10


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    kernel: str
    #: Why a pod cannot have namespaces of its own; empty if it can.
    namespace_problem: str
    has_seccomp: bool
    #: The layout of control groups (0: none), and the controllers that can be used.
    cgroup_version: int
    controllers: tuple[str, ...]
    #: Name of each installed runtime, and what it says about itself.
    runtimes: Mapping[str, str]
    gpus: tuple[GpuDevice, ...]
    #: NVIDIA's devices on the PCI bus, whether a driver uses them or not.
    nvidia_devices: int
    #: Of the file system with the data folder.
    disk_free: int
    disk_size: int
    is_clock_synchronized: bool


def check_machine(data_dir: str, *, is_personal: bool) -> list[Finding]:
    facts = observe_machine_facts(data_dir)
    return [
        judge_kernel(facts.kernel),
        judge_isolation(facts.namespace_problem, has_seccomp=facts.has_seccomp, is_personal=is_personal),
        judge_limits(facts.cgroup_version, facts.controllers, is_root=os.geteuid() == 0),
        judge_gpus(facts.gpus, facts.nvidia_devices),
        judge_runtimes(facts.runtimes),
        judge_disk(facts.disk_free, facts.disk_size, data_dir),
        judge_clock(is_synchronized=facts.is_clock_synchronized),
    ]


def observe_machine_facts(data_dir: str) -> MachineFacts:
    version, controllers = _observe_controllers()
    existing = next(folder for folder in (Path(data_dir), *Path(data_dir).absolute().parents) if folder.exists())
    disk = os.statvfs(existing)
    return MachineFacts(
        kernel=os.uname().release,
        namespace_problem=_try_namespaces(),
        has_seccomp=seccomp.is_available(),
        cgroup_version=version,
        controllers=controllers,
        runtimes=_observe_runtimes(),
        gpus=nvml.observe_devices(),
        nvidia_devices=_count_nvidia_devices(),
        # What a user without privileges can still write.
        disk_free=disk.f_bavail * disk.f_frsize,
        disk_size=disk.f_blocks * disk.f_frsize,
        is_clock_synchronized=syscalls.is_clock_synchronized(),
    )


def judge_kernel(release: str) -> Finding:
    numbers = tuple(int(number) for number in re.findall(r"\d+", release)[:2])
    if numbers < OLDEST_KERNEL:
        needed = ".".join(map(str, OLDEST_KERNEL))
        return Finding("Kernel", "missing", f"Linux {release} is too old", f"Boot Linux {needed} or newer")
    return Finding("Kernel", "ok", f"Linux {release}")


def judge_isolation(problem: str, *, has_seccomp: bool, is_personal: bool) -> Finding:
    """A personal server does not isolate its owner's jobs, so it can do without."""
    what = "Isolation"
    if problem:
        advice = "Allow user namespaces (sysctl user.max_user_namespaces), or run the server as root"
        state = "note" if is_personal else "missing"
        return Finding(what, state, f"pods cannot have namespaces: {problem}", advice)
    if not has_seccomp:
        advice = "Boot a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or ARM64"
        return Finding(what, "note", "pods have namespaces, but no seccomp filter", advice)
    return Finding(what, "ok", "pods can have namespaces and a seccomp filter")


def judge_limits(version: int, controllers: Sequence[str], *, is_root: bool) -> Finding:
    what = "Control groups"
    lacking = [name for name in cgroups.CONTROLLERS if name not in controllers]
    if not lacking:
        return Finding(what, "ok", f"version {version}: limits of {', '.join(controllers)} are enforced")
    if is_root:
        advice = "Mount the control groups writable at /sys/fs/cgroup (in a container: --cgroupns=private)"
    else:
        advice = "Run the server as a systemd user service with Delegate=yes, or as root"
    return Finding(what, "note", f"limits of {', '.join(lacking)} are not enforced", advice)


def judge_gpus(gpus: Sequence[GpuDevice], nvidia_devices: int) -> Finding:
    if gpus:
        models = [f"{sum(one.model == model for one in gpus)} × {model or 'unknown model'}" for model in _models(gpus)]
        return Finding("GPUs", "ok", ", ".join(models))
    if nvidia_devices:
        advice = "Install NVIDIA's driver, load it (modprobe nvidia), and check it with nvidia-smi"
        return Finding("GPUs", "missing", f"{nvidia_devices} NVIDIA devices, but the driver lists none", advice)
    advice = f"Nothing, or declare GPUs to try things out: {RESTART} --node lab:cpu=8,memory=16G,gpus=2"
    return Finding("GPUs", "note", "this machine has none", advice)


def judge_runtimes(runtimes: Mapping[str, str]) -> Finding:
    what = "Container runtimes"
    if runtimes:
        names = ", ".join(version or name for name, version in runtimes.items())
        return Finding(what, "ok", f"{names}; enable one with --runtime {next(iter(runtimes))}")
    advice = "Nothing, or install podman (Debian: apt-get install podman) and start the server with --runtime podman"
    return Finding(what, "note", "none; jobs run on this machine's own files, and images are not used", advice)


def judge_disk(free: int, size: int, data_dir: str) -> Finding:
    what, text = "Disk", f"{free / GIBIBYTE:.1f} of {size / GIBIBYTE:.1f} GiB are free for {data_dir}"
    advice = f"Delete finished workloads and old files below {data_dir}, or choose another folder with --data-dir"
    if free < GIBIBYTE:
        return Finding(what, "missing", text, advice)
    if free < size / 20:
        return Finding(what, "note", text, advice)
    return Finding(what, "ok", text)


def judge_clock(*, is_synchronized: bool) -> Finding:
    if is_synchronized:
        return Finding("Clock", "ok", "synchronized")
    advice = "Install a time service (Debian: apt-get install systemd-timesyncd), or check the clock of the host"
    return Finding("Clock", "note", "the kernel does not know of a time service; tokens and times may be wrong", advice)


def _models(gpus: Sequence[GpuDevice]) -> list[str]:
    return list(dict.fromkeys(one.model for one in gpus))


def _try_namespaces() -> str:
    """Make namespaces as pods get them, in a child."""
    flags = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC
    if os.geteuid() != 0:
        flags |= syscalls.CLONE_NEWUSER
    pid = os.fork()
    if pid == 0:
        try:
            syscalls.unshare(flags)
        except OSError as error:
            os._exit(error.errno or 255)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return os.strerror(code) if code else ""


def _observe_controllers() -> tuple[int, tuple[str, ...]]:
    """As `cgroups.observe`, which may move processes in version 2: here only what the files say is read."""
    root = cgroups.ROOT
    offered = small_files.read(f"{root}/cgroup.controllers").split()
    if offered:
        own = next((line[3:] for line in small_files.read("/proc/self/cgroup").splitlines() if line[:3] == "0::"), "/")
        places = (f"{root}{own}", os.path.dirname(f"{root}{own}"), root)
        can_write = any(os.access(f"{place}/cgroup.procs", os.W_OK) for place in places)
        return 2, tuple(name for name in cgroups.CONTROLLERS if name in offered and can_write)
    groups = cgroups.observe()
    return (groups.version, tuple(groups.parents)) if groups else (0, ())


def _observe_runtimes() -> dict[str, str]:
    runtimes = {}
    for name, runtime in RUNTIMES.items():
        program = shutil.which(runtime.program, path=PATH)
        if program:
            try:
                done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                continue
            runtimes[name] = done.stdout.strip().partition("\n")[0]
    return runtimes


def _count_nvidia_devices() -> int:
    devices = Path("/sys/bus/pci/devices")
    if not devices.is_dir():
        return 0
    return sum(
        small_files.read(f"{device}/vendor").strip() == _NVIDIA
        and small_files.read(f"{device}/class").startswith(_DISPLAY)
        for device in devices.iterdir()
    )
