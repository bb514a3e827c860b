"""A pod's own network as its supervisor makes it: a namespace, a veth pair to this machine, and sockets inside it.

The plan comes from the server (`PodNetworks.plan`). The namespace exists as long as a process or an open file of it
does, and its veth pair with it: when the pod and its supervisor have ended, however they did, the network is gone.
"""

import contextlib
import os
import socket
from collections.abc import Iterator

from fairlead.engines.local.launch_order import NetworkPlan
from fairlead.engines.local.linux import mount_syscalls, small_files, syscalls
from fairlead.engines.local.linux.netlink import Links
from fairlead.engines.local.network import router

INSIDE_NAME = "eth0"
_OWN = "/proc/self/ns/net"


class PodNetwork:
    """The namespace of one pod, held open by its supervisor."""

    def __init__(self, plan: NetworkPlan) -> None:
        self._plan = plan
        self.address = plan.address
        self._host = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        self.namespace = -1
        self._router = -1
        #: It needs no user namespace and no further process that has to be waited for.
        self.user, self.helper, self.ready = -1, 0, -1
        self._make()

    def _make(self) -> None:
        plan = self._plan
        syscalls.unshare(syscalls.CLONE_NEWNET)
        try:
            self.namespace = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
            # Opened here, so it stays about the devices in here.
            inside = Links()
        finally:
            syscalls.setns(self._host, syscalls.CLONE_NEWNET)
        with inside, Links() as outside:
            if plan.router is not None:
                with router.locked():
                    self._router = router.hold(outside, plan.router)
            outside.remove(plan.link)
            outside.add_pair(plan.link, INSIDE_NAME, self.namespace, plan.group)
            # A pod with rights over its packets must not send in another's name.
            with contextlib.suppress(OSError):
                small_files.write(f"/proc/sys/net/ipv4/conf/{plan.link}/rp_filter", "1")
            outside.add_route_to(plan.address, socket.if_nametoindex(plan.link), plan.link, plan.gateway)
            with self._entered():
                index = socket.if_nametoindex(INSIDE_NAME)
            inside.set_up(router.LOOPBACK, "lo")
            inside.add_address(index, INSIDE_NAME, plan.address)
            inside.set_up(index, INSIDE_NAME)
            inside.add_default_route(index, INSIDE_NAME, plan.gateway)

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        syscalls.setns(self.namespace, syscalls.CLONE_NEWNET)
        try:
            yield
        finally:
            syscalls.setns(self._host, syscalls.CLONE_NEWNET)

    def open_socket(self) -> socket.socket:
        """A socket that belongs to the pod's network, wherever it is used."""
        with self._entered():
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def join(self) -> None:
        """Nothing to do: the veth pair exists as long as the namespace."""

    def close(self) -> None:
        """Let go of the namespace, which the kernel removes in the background: to wait for that takes 25 ms."""
        os.close(self.namespace)
        os.close(self._host)
        with router.locked(), Links() as outside:
            router.release(outside, self._router)


def enter(plan: NetworkPlan, namespace: int, user: int = -1) -> None:
    """Leave the host's network and name for the pod's own; called in the pod's process before anything else.

    Its `/etc/hosts` (and, where the host's would not work, `/etc/resolv.conf`) lie over the host's from here on; an
    isolated pod takes its copy of the mounts afterwards, and these with it. `user` is the namespace that owns it.
    """
    if user >= 0:
        syscalls.setns(user, syscalls.CLONE_NEWUSER)
    syscalls.setns(namespace, syscalls.CLONE_NEWNET)
    syscalls.unshare(syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWNS)
    socket.sethostname(plan.hostname)
    # What the host mounts later is still seen; what is mounted here stays here.
    mount_syscalls.mount("none", "/", flags=mount_syscalls.MS_REC | mount_syscalls.MS_SLAVE)
    for target, source in plan.files:
        real_path = os.path.realpath(target)
        if os.path.isfile(real_path):
            mount_syscalls.mount(source, real_path, flags=mount_syscalls.MS_BIND)
            mount_syscalls.make_read_only(real_path)
