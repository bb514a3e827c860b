"""Which tools this machine gives the server for pods' own networks, and what to do about a missing one.

Asked once when the server starts, and by `doctor`. It reads and opens; it changes nothing.
"""

import errno
import os
import shutil
from typing import NamedTuple

from fairlead.engines.local.linux import small_files

#: The device by which pasta or slirp4netns connects a namespace to the outside.
TUN = "/dev/net/tun"
_NET_ADMIN, _SYS_ADMIN = 12, 21
#: (setting of the kernel, the value that forbids namespaces to users, the value that allows them).
_NAMESPACE_SETTINGS = (
    ("user.max_user_namespaces", "0", "15000"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
)


class Lack(NamedTuple):
    """A tool that cannot be used: what is wrong with it, and what to do."""

    tool: str
    problem: str
    advice: str

    def __str__(self) -> str:
        return f"{self.problem}: {self.advice}, then restart the server"


class NetworkTools(NamedTuple):
    #: Whether the server may make and connect network namespaces, as root may.
    is_admin: bool
    #: Without that right, the program by which a namespace of the server's user reaches the world; empty if it cannot.
    pasta: str
    nft: str
    lacks: tuple[Lack, ...] = ()
    #: The same where pasta is not installed.
    slirp4netns: str = ""

    @property
    def helper(self) -> str:
        """Whichever of the two programs is used."""
        return self.pasta or self.slirp4netns


def find_tools(device: str = TUN) -> NetworkTools:
    """What this process may use."""
    nft = shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""
    if os.geteuid() == 0:
        is_admin = _has_admin()
        lacks = [] if is_admin else [_NO_ADMIN]
        if is_admin and not nft:
            lacks.append(_NO_NFT)
        return NetworkTools(is_admin, "", nft, tuple(lacks))
    pasta = shutil.which("pasta") or ""
    slirp = "" if pasta else shutil.which("slirp4netns") or ""
    name = "slirp4netns" if slirp else "pasta"
    checks = (_check_namespaces(), None if pasta or slirp else _NO_PASTA, _check_device(device, name))
    lacks = [lack for lack in checks if lack is not None]
    if lacks:
        return NetworkTools(False, "", nft, tuple(lacks))
    return NetworkTools(False, pasta, nft, slirp4netns=slirp)


_NO_ADMIN = Lack(
    "administration of networks",
    "root may not change networks in this container",
    "give it the capabilities NET_ADMIN and SYS_ADMIN",
)
_NO_NFT = Lack("nftables", "the program nft is not installed", "install nftables (Debian: apt-get install nftables)")
_NO_PASTA = Lack("pasta", "neither pasta nor slirp4netns is installed", "install pasta (Debian: apt-get install passt)")


def _check_namespaces() -> Lack | None:
    """As far as the kernel's settings say; a setting that a kernel does not have forbids nothing."""
    if not os.path.exists("/proc/self/ns/user"):
        return Lack("user namespaces", "this kernel has no user namespaces", "boot one with CONFIG_USER_NS")
    for name, forbidden, allowed in _NAMESPACE_SETTINGS:
        if small_files.read(f"/proc/sys/{name.replace('.', '/')}").strip() == forbidden:
            problem = f"the kernel does not let users create namespaces ({name} is {forbidden})"
            return Lack("user namespaces", problem, f"run as root: sysctl -w {name}={allowed}")
    return None


def _check_device(device: str, helper: str) -> Lack | None:
    """Whether this user can open the device, as the helper will: its file's mode alone does not tell in a container."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        advice = {
            errno.EACCES: f"run as root: chmod 0666 {device}",
            errno.EPERM: f"start the container with --device {device}",
            errno.ENODEV: "run as root: modprobe tun",
        }.get(error.errno or 0, f"run as root: modprobe tun; mkdir -p /dev/net; mknod -m 0666 {device} c 10 200")
        return Lack("network device", f"{helper} cannot open {device} ({error.strerror})", advice)
    return None


def _has_admin() -> bool:
    """Whether root may change networks here; inside many containers it may not."""
    for line in small_files.read("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            capabilities = int(line.split()[1], 16)
            return bool(capabilities & 1 << _NET_ADMIN) and bool(capabilities & 1 << _SYS_ADMIN)
    return False
