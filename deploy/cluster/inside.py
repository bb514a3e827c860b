"""Furnishes the cluster's namespaces from inside: its own /proc, /sys, control groups, /run, and a network.

Called by the supervisor before anything else runs there. Nothing of it is seen outside, and all of it goes with the
supervisor; only the cluster's own folder is shared with the machine.
"""

import os
import subprocess
from pathlib import Path

from deploy.cluster.layout import NODE, Layout
from deploy.cluster.sandbox import LEAF, UPLINK

#: Programs write here by fixed names (pods' logs, sockets of shims, provisioned volumes). What is below stays readable.
COVERED = ("/var", "/tmp")  # noqa: S108 - not a file in it: the folder itself is covered


def furnish(layout: Layout) -> None:
    groups = mounted_groups()
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "proc", "proc", "/proc")
    mount_groups(groups)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for place in COVERED:
        cover(place, layout.folder)
    # Containers may ask that what is mounted in them shows outside, and the kubelet wants that to be possible.
    run("mount", "--make-rshared", "/")
    connect(layout)


def mounted_groups() -> list[tuple[str, str, str]]:
    """Type, options and place of each tree of control groups, as the machine has them."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            named = [word for word in options.split(",") if word not in ("rw", "ro")]
            found.append((kind, ",".join(named) if kind == "cgroup" else "", before.split()[4]))
    return found


def mount_groups(groups: list[tuple[str, str, str]]) -> None:
    """The same trees once more, each now beginning at the cluster's own group."""
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    if [kind for kind, _, _ in groups] != ["cgroup2"]:
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/sys/fs/cgroup")
    for kind, options, place in groups:
        Path(place).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", kind, *(("-o", options) if options else ()), kind, place)
        if kind == "cgroup2":
            pass_controllers_on(Path(place))


def pass_controllers_on(root: Path) -> None:
    """To the groups of containers; `sandbox.leave_tops` made room for that."""
    controllers = (root / "cgroup.controllers").read_text().split()
    if not controllers:
        return
    (root / LEAF / "cgroup.procs").write_text("0")
    (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def cover(place: str, folder: Path) -> None:
    """Writing there goes to memory from now on; the cluster's folder, if it is below, stays the machine's."""
    above = Path("/run/covers", place.strip("/"))
    for part in ("upper", "work"):
        (above / part).mkdir(parents=True)
    kept = os.open(folder, os.O_PATH)
    options = f"lowerdir={place},upperdir={above}/upper,workdir={above}/work"
    run("mount", "-t", "overlay", "-o", options, "overlay", place)
    if folder.is_relative_to(place):
        source = f"/proc/{os.getpid()}/fd/{kept}"
        run("mount", "--no-canonicalize", "--bind", source, str(folder))
    os.close(kept)


def connect(layout: Layout) -> None:
    """The machine is one hop away and nothing is beyond it: there is no default route."""
    run("hostname", NODE)
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{layout.address}/24", "dev", UPLINK)
    run("ip", "link", "set", UPLINK, "up")
    # Without a way there, a program here could not even begin to ask a service, which kube-proxy then leads to a pod.
    run("ip", "route", "add", str(layout.services), "dev", UPLINK, "src", layout.address)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def run(*words: str) -> None:
    subprocess.run(words, check=True)
