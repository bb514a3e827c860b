"""A pod's own network without root: a namespace of the server's own user, and a helper that connects it to the outside.

The helper is pasta or, if that is not installed, slirp4netns. The supervisor makes the network in place of
`namespace.PodNetwork`, with the same methods. It is reached only through sockets that are opened inside, so pods that
must find each other by address do not get one. It ends with its last process or open file, the helper with its
supervisor.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

from fairlead.engines.local.launch_order import NetworkPlan
from fairlead.engines.local.linux import syscalls
from fairlead.engines.local.linux.netlink import Links

_LOOPBACK = 1
_READY_SECONDS = 10.0
#: What pods call the device that slirp4netns makes, as pasta's is called on most machines.
_SLIRP_DEVICE = "eth0"
_KINDS = syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNET


class UserNetwork:
    """The namespace of one pod, held open by its supervisor."""

    address = "127.0.0.1"

    def __init__(self, plan: NetworkPlan) -> None:
        self._plan = plan
        self.user, self.namespace = _make()
        #: The process that carries what leaves the machine; 0 for none.
        self.helper = 0
        #: The helper writes to this pipe as soon as it is ready.
        self.ready = -1
        self.join()

    def join(self) -> None:
        """Connect it to the world outside, unless it is."""
        if self.helper and _lives(self.helper):
            return
        if self.ready >= 0:
            os.close(self.ready)
        self.ready, announce = os.pipe2(os.O_CLOEXEC)
        self.helper = os.fork()
        if self.helper == 0:
            _become_helper(self._plan, [self.user, self.namespace, announce])
        os.close(announce)

    def open_socket(self) -> socket.socket:
        """A socket of the pod's network, opened by a short-lived process inside it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.fork()
        if child == 0:
            _send_socket(theirs, self.user, self.namespace)
        theirs.close()
        with ours:
            _, files, _, _ = socket.recv_fds(ours, 16, 1)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        if not files:
            raise OSError("no socket could be opened in the pod's own network")
        return socket.socket(fileno=files[0])

    def close(self) -> None:
        if self.helper:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.helper, signal.SIGKILL)
                os.waitpid(self.helper, 0)
        for file in (self.namespace, self.user, self.ready):
            os.close(file)


def _make() -> tuple[int, int]:
    """Open files of a new user namespace and of a network that belongs to it. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        _make_inside(theirs)
    theirs.close()
    with ours:
        answer, files, _, _ = socket.recv_fds(ours, 256, 2)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)
    if len(files) != 2:
        number = int(answer or b"0")
        raise OSError(number, os.strerror(number), "user namespace")
    return files[0], files[1]


def _make_inside(link: socket.socket) -> NoReturn:
    try:
        uid, gid = os.geteuid(), os.getegid()
        syscalls.unshare(_KINDS)
        for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(line)
        with Links() as links:
            links.set_up(_LOOPBACK, "lo")
        files = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("user", "net")]
        socket.send_fds(link, [b"made"], files)
    except OSError as error:
        link.send(str(error.errno or 0).encode())
    finally:
        os._exit(0)


def _send_socket(link: socket.socket, user: int, namespace: int) -> NoReturn:
    try:
        enter(user, namespace)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as pod_socket:
            socket.send_fds(link, [b"made"], [pod_socket.fileno()])
    finally:
        os._exit(0)


def enter(user: int, namespace: int) -> None:
    """Go from this machine's network to the pod's own."""
    syscalls.setns(user, syscalls.CLONE_NEWUSER)
    syscalls.setns(namespace, syscalls.CLONE_NEWNET)


def wait_until_ready(pipe: int) -> None:
    """Wait until the helper carries what the pod sends. Raises OSError if it does not."""
    if not select.select([pipe], [], [], _READY_SECONDS)[0]:
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), "its connection to the outside")
    if not os.read(pipe, 1):
        raise OSError(errno.ECHILD, os.strerror(errno.ECHILD), "its network helper ended; see the fork server's log")


def _become_helper(plan: NetworkPlan, files: Sequence[int]) -> NoReturn:
    """Nothing is passed on to the pod from outside. `files`: the user namespace, the network, what it is ready by."""
    try:
        signal.set_wakeup_fd(-1)
        # Also the one that Python ignores: the helper takes that for a failure.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        for file in files:
            os.set_inheritable(file, True)
        arguments = render_pasta(plan, files) if plan.pasta else render_slirp4netns(plan, files)
        os.execve(plan.helper, arguments, {"PATH": os.defpath})
    except OSError:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(127)


def render_pasta(plan: NetworkPlan, files: Sequence[int]) -> list[str]:
    options = ["--config-net", "--foreground", "--quiet", "-t", "none", "-u", "none", "-U", "none"]
    options += ["-T", plan.services, "--no-map-gw"] if plan.services else ["-T", "none"]
    user, namespace, ready = (f"/proc/self/fd/{file}" for file in files)
    return ["pasta", *options, "--userns", user, "--netns", namespace, "--pid", ready]


def render_slirp4netns(plan: NetworkPlan, files: Sequence[int]) -> list[str]:
    """Without its own name server: that passes every port on to the machine's, which may be at its loopback."""
    user, namespace, ready = files
    options = ["--configure", "--mtu=65520", "--disable-dns", "--enable-seccomp", f"--ready-fd={ready}"]
    if plan.services:
        options.append("--disable-host-loopback")
    places = [f"--userns-path=/proc/self/fd/{user}", "--netns-type=path", f"/proc/self/fd/{namespace}"]
    return ["slirp4netns", *options, *places, _SLIRP_DEVICE]


def _lives(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False
