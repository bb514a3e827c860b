"""Which network a pod gets, as the server decides it: its address, its names, and what is cleaned up after it.

Used by the engine. Pods that serve get a namespace of their own where this server may make one; the supervisor makes
it by the plan written here (`namespace.py`). Others share the machine's network, and their ports are checked.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable

from fairlead.engines.local.launch_order import NetworkPlan
from fairlead.engines.local.linux import small_files
from fairlead.engines.local.linux.netlink import Links
from fairlead.engines.local.network import bridge as network_bridge
from fairlead.engines.local.network import hosts
from fairlead.engines.local.network.tools import NetworkTools, find_tools
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodContainer, PodSpec

#: The second number of the private range 10.N.0.0/16 that a server takes for its pods.
_RANGES = range(100, 228)
_PREFIX = 16
#: Addresses of one range that are given to pods: all but the network's own, the bridge's and the broadcast.
_FIRST, _LAST = 2, 65_533
_RESOLV, _HOSTS = "/etc/resolv.conf", "/etc/hosts"
_UPSTREAM_RESOLV = "/run/systemd/resolve/resolv.conf"

#: What pods with networks of their own call this machine.
MACHINE = "host.fairlead.internal"
LOOPBACK = "127.0.0.1"


def is_serving(pod: PodSpec) -> bool:
    """Whether others are meant to reach the pod: then it has a network of its own."""
    fields = pod.container.fields
    return bool(fields.ports or fields.exposed_urls or pod.addressed)


def has_host_network(pod: PodSpec) -> bool:
    return pod.container.fields.security.host_network


class PodNetworks:
    """The addresses and names of one server's pods.

    `joins` says whether what runs a container can be put into a network that its supervisor made.
    """

    def __init__(
        self, folder: str, joins: Callable[[PodContainer], bool] = lambda _: True, tools: NetworkTools | None = None
    ) -> None:
        self._joins = joins
        self._tools = tools or find_tools()
        self._folder = f"{folder}/network"
        digest = hashlib.sha256(os.path.abspath(folder).encode()).hexdigest()
        self._id = digest[:8]
        self.bridge = f"{network_bridge.PREFIX}{self._id}"
        #: Whether this server may make namespaces and bridges.
        self.is_able = self._tools.is_admin
        self._range = 0
        self._claims = -1
        self._next = _FIRST
        #: Plans of pods that have not ended, by pod id.
        self._plans: dict[str, NetworkPlan] = {}

    def prepare(self) -> None:
        """Before anything runs: choose the address range, the previous one if pods still use it."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._range = self._load_range()

    def close(self) -> None:
        """Give the range up; while pods are plugged in, the machine's route still holds it."""
        if self._claims >= 0:
            os.close(self._claims)
            self._claims = -1

    def _load_range(self) -> int:
        path = f"{self._folder}/range"
        taken = _taken_ranges(self.bridge)
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            kept = int(file.read())
            if kept in _RANGES and kept not in taken and self._claim(kept):
                return kept
        start = int(self._id, 16) % len(_RANGES)
        order = [_RANGES[(start + step) % len(_RANGES)] for step in range(len(_RANGES))]
        chosen = next((number for number in order if number not in taken and self._claim(number)), order[0])
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(str(chosen))
        return chosen

    def _claim(self, number: int) -> bool:
        """Whether a range is ours from now on: no other server of this machine that runs has chosen it."""
        if not self.is_able:
            return True
        if self._claims < 0:
            self._claims = network_bridge.open_claims()
        try:
            # Of this process alone: pods that outlive it do not hold what its successor takes.
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError:
            return False
        return True

    def is_own(self, pod: PodSpec) -> bool:
        """Whether a pod gets a network of its own; one of a user cannot be reached by address, as groups need it."""
        can = self.is_able or (bool(self._tools.pasta) and not pod.addressed)
        return is_serving(pod) and not has_host_network(pod) and can and self._joins(pod.container)

    def plan(self, pod: PodSpec) -> NetworkPlan | None:
        """The plan for a pod's own network; None where it shares the machine's."""
        if not self.is_own(pod):
            return None
        if not self.is_able:
            return self._plan_of_user(pod)
        known = self._plans.get(pod.pod_id)
        number = self._numbered(known.address) if known else self._free_number()
        address = self._address(number)
        files = [[_HOSTS, self._hosts_file(pod.workload_id)]]
        if hosts.has_local_resolver(small_files.read(_RESOLV)) and os.path.exists(_UPSTREAM_RESOLV):
            files.append([_RESOLV, _UPSTREAM_RESOLV])
        plan = NetworkPlan(
            bridge=self.bridge,
            link=f"fv{self._id[:6]}{number:04x}",
            address=address,
            prefix=_PREFIX,
            subnet=f"10.{self._range}.0.0/{_PREFIX}",
            gateway=self._address(1),
            nft=self._tools.nft,
            hostname=pod.pod_name[:64],
            names=hosts.names_of(pod.pod_name, pod.workload_name, pod.namespace),
            workload=pod.workload_id,
            files=files,
        )
        self.register(pod.pod_id, plan)
        return plan

    def _plan_of_user(self, pod: PodSpec) -> NetworkPlan:
        """A network without root, in which a pod knows only its own address."""
        names = hosts.names_of(pod.pod_name, pod.workload_name, pod.namespace)
        own = self._hosts_file(pod.pod_id)
        # Pasta takes what goes to the machine's own gateway as meant for the machine.
        machine = _default_gateway()
        members = [(LOOPBACK, names), *([(machine, [MACHINE])] if machine else [])]
        self._write(own, hosts.render_hosts(members, small_files.read(_HOSTS)))
        plan = NetworkPlan(
            pasta=self._tools.pasta,
            address=LOOPBACK,
            gateway=LOOPBACK,
            hostname=pod.pod_name[:64],
            workload=pod.workload_id,
            files=[[_HOSTS, own]],
        )
        self.register(pod.pod_id, plan)
        return plan

    def register(self, pod_id: str, plan: NetworkPlan) -> None:
        """Reserve a pod's address and publish its names: of a new pod, or of one that a previous server started."""
        self._plans[pod_id] = plan
        if not plan.pasta:
            self._write_hosts(plan.workload)

    def release(self, pod_id: str) -> None:
        """A pod has ended: its address is free, its names are gone."""
        plan = self._plans.pop(pod_id, None)
        if plan is None:
            return
        if plan.pasta:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._hosts_file(pod_id))
        elif any(other.workload == plan.workload for other in self._plans.values()):
            self._write_hosts(plan.workload)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._hosts_file(plan.workload))

    @property
    def gateway(self) -> str:
        """Where pods with networks of their own reach this machine; empty where there are none."""
        return self._address(1) if self.is_able else ""

    def address_of(self, pod_id: str) -> str:
        """Where this machine reaches a pod that has a network of its own; empty where it does not."""
        plan = self._plans.get(pod_id)
        return plan.address if plan is not None and not plan.pasta else ""

    def is_closed(self, pod_id: str) -> bool:
        """Whether a pod's own network is reached from inside only."""
        plan = self._plans.get(pod_id)
        return plan is not None and bool(plan.pasta)

    def sweep(self) -> None:
        """Remove what killed supervisors left: cables without a pod, then bridges without cables, others' too."""
        if not self.is_able:
            return
        # The links first: a plan is there before its link, so one that is made meanwhile is not taken for stale.
        ours = [name for name in os.listdir("/sys/class/net") if name.startswith(f"fv{self._id[:6]}")]
        kept = {plan.link for plan in tuple(self._plans.values())}
        stale = [name for name in ours if name not in kept]
        if not stale and not network_bridge.unused():
            return
        with network_bridge.locked(), Links() as links:
            for name in stale:
                links.remove(name)
            network_bridge.remove_unused(links)

    def remarks(self, container: PodContainer, *, is_addressed: bool = False) -> list[tuple[str, str]]:
        """What works less well for a pod that serves than on a cluster, as (field, what)."""
        fields = container.fields
        field = "ports" if fields.ports else "exposedUrls" if fields.exposed_urls else ""
        if not field or fields.security.host_network:
            return []
        has_own = self.is_able or (bool(self._tools.pasta) and not is_addressed)
        if not has_own or not self._joins(container):
            what = "pods share this machine's network here: a port that two of them use refuses the second"
            # What the tools lack is no reason for pods that would have no such network with them either.
            lacks = self._tools.lacks if self._joins(container) and not is_addressed else ()
            return [(field, "; ".join([what, *map(str, lacks)]))]
        if self.is_able and not self._tools.nft:
            return [(field, "its own network reaches this machine only: install nftables for connections beyond it")]
        if hosts.has_local_resolver(small_files.read(_RESOLV)) and not os.path.exists(_UPSTREAM_RESOLV):
            return [(field, "names beyond its workload are not found: this machine looks them up at its own loopback")]
        return []

    def _free_number(self) -> int:
        used = {plan.address for plan in self._plans.values()}
        for _ in range(_FIRST, _LAST + 1):
            number = self._next
            self._next = number + 1 if number < _LAST else _FIRST
            if self._address(number) not in used:
                return number
        raise Refused(f"all addresses of 10.{self._range}.0.0/{_PREFIX} are in use by pods of this server")

    def _address(self, number: int) -> str:
        return f"10.{self._range}.{number >> 8}.{number & 255}"

    def _numbered(self, address: str) -> int:
        _, _, high, low = address.split(".")
        return (int(high) << 8) + int(low)

    def _hosts_file(self, workload_id: str) -> str:
        return f"{self._folder}/{workload_id}.hosts"

    def _write_hosts(self, workload_id: str) -> None:
        """Written in place: pods hold the very file, and see names of their group come and go."""
        plans = [plan for plan in self._plans.values() if plan.workload == workload_id]
        members = [(self.gateway, [MACHINE]), *((plan.address, plan.names) for plan in plans)]
        self._write(self._hosts_file(workload_id), hosts.render_hosts(members, small_files.read(_HOSTS)))

    def _write(self, path: str, text: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(descriptor, 0o644)
            os.pwrite(descriptor, text.encode(), 0)
            os.ftruncate(descriptor, len(text.encode()))
        finally:
            os.close(descriptor)


def _default_gateway() -> str:
    """This machine's default gateway; empty without one."""
    for line in small_files.read("/proc/net/route").splitlines()[1:]:
        _, destination, gateway, *_ = line.split()
        if destination == "00000000" and gateway != "00000000":
            return ".".join(str(octet) for octet in int(gateway, 16).to_bytes(4, "little"))
    return ""


def _taken_ranges(bridge: str) -> set[int]:
    """Second numbers of 10.N that this machine already has a route into, other than by our bridge."""
    taken = set()
    for line in small_files.read("/proc/net/route").splitlines()[1:]:
        device, destination, *_ = line.split()
        octets = int(destination, 16).to_bytes(4, "little")
        if device != bridge and octets[0] == 10:
            taken.add(octets[1])
    return taken
