"""Which network a pod gets, as the server decides it: its address, its names, and what is cleaned up after it.

Used by the engine. In shared mode every pod gets a namespace of its own, in personal mode those that serve, if this
server may make one; the supervisor makes it by the plan written here (`namespace.py`, `user_network.py`). Others share
the machine's network, and their ports are checked.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Sequence

from fairlead.engines.local.launch_order import NetworkPlan, RouterPlan
from fairlead.engines.local.linux import small_files
from fairlead.engines.local.linux.netlink import Links
from fairlead.engines.local.network import egress, hosts, router
from fairlead.engines.local.network.ports import INSIDE_PORTS
from fairlead.engines.local.network.tools import Lack, NetworkTools, find_tools
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodContainer, PodSpec

#: The second number of the private range 10.N.0.0/16 that a server takes for its pods.
_RANGES = range(100, 228)
_PREFIX = 16
#: Addresses of one range that are given to pods: all but the network's own, the gateway's and the broadcast.
_FIRST, _LAST = 2, 65_533
_HOSTS = "/etc/hosts"
_MAX_GROUPS = (1 << router.GROUP_BITS) - 1
#: What `--allow` calls it when pods of a shared server share the machine's network.
SHARED_NETWORK = "shared-network"

_NO_RULES = "boot a kernel with nf_tables (CONFIG_NF_TABLES, CONFIG_NFT_MASQ), or load its modules"

#: What pods with networks of their own call this machine.
MACHINE = "host.fairlead.internal"
LOOPBACK = "127.0.0.1"
#: Where slirp4netns shows the machine's loopback.
_SLIRP_GATEWAY = "10.0.2.2"


def is_serving(pod: PodSpec) -> bool:
    """Whether others are meant to reach the pod: then it has a network of its own."""
    fields = pod.container.fields
    return bool(fields.ports or fields.exposed_urls or pod.addressed)


def has_host_network(pod: PodSpec) -> bool:
    return pod.container.fields.security.host_network


class PodNetworks:
    """The addresses and names of one server's pods.

    `joins` says whether what runs a container can be put into a network that its supervisor made. If `is_shared`, the
    pods belong to several people, and every one gets a network of its own; only if `may_share`, one that cannot have
    one starts all the same.
    """

    def __init__(
        self,
        folder: str,
        joins: Callable[[PodContainer], bool] = lambda _: True,
        tools: NetworkTools | None = None,
        *,
        is_shared: bool = False,
        may_share: bool = False,
    ) -> None:
        self._joins = joins
        self._is_shared = is_shared
        self._may_share = may_share
        self._tools = tools or find_tools()
        self._folder = f"{folder}/network"
        digest = hashlib.sha256(os.path.abspath(folder).encode()).hexdigest()
        self._id = digest[:8]
        self.table = f"{router.TABLES}{self._id}"
        self._devices = f"{router.DEVICES}{self._id[:6]}"
        #: Whether this server may make namespaces and connect them.
        self.is_able = self._tools.is_admin
        #: By which a shared server holds the machine's part of the networks.
        self._router = -1
        self._range = 0
        self._claims = -1
        self._next = _FIRST
        self._next_group = 1
        #: Plans of pods that have not ended, by pod id.
        self._plans: dict[str, NetworkPlan] = {}

    def prepare(self) -> None:
        """Before anything runs: choose the address range, the previous one if pods still use it."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._range = self._load_range()
        if self._is_shared and self.is_able and self._tools.nft:
            self._hold_router()

    def _hold_router(self) -> None:
        """Make the rules before the first pod, and keep them: many pods would otherwise make and remove them."""
        try:
            with router.locked(), Links() as links:
                self._router = router.hold(links, self._router_plan())
        except OSError as error:
            lack = Lack("nftables", f"the rules for pods' networks cannot be set ({error.strerror})", _NO_RULES)
            self._tools = self._tools._replace(nft="", lacks=(*self._tools.lacks, lack))

    def repair(self) -> bool:
        """Set the rules again if somebody removed them; whether they were missing."""
        with router.locked():
            return self._router >= 0 and router.repair(self._router_plan())

    @property
    def has_rules(self) -> bool:
        """Whether this server keeps rules as long as it runs."""
        return self._router >= 0

    def close(self) -> None:
        """Give the range up; while pods are connected, the machine's routes still hold it."""
        if self._claims >= 0:
            os.close(self._claims)
            self._claims = -1
        if self._router >= 0:
            with router.locked(), Links() as links:
                router.release(links, self._router)
            self._router = -1

    def _load_range(self) -> int:
        path = f"{self._folder}/range"
        used_ranges = _taken_ranges(self._devices)
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            recorded = int(file.read())
            if recorded in _RANGES and recorded not in used_ranges and self._claim(recorded):
                return recorded
        start = int(self._id, 16) % len(_RANGES)
        order = [_RANGES[(start + step) % len(_RANGES)] for step in range(len(_RANGES))]
        chosen = next((number for number in order if number not in used_ranges and self._claim(number)), order[0])
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(str(chosen))
        return chosen

    def _claim(self, number: int) -> bool:
        """Whether a range is ours from now on: no other server of this machine that runs has chosen it."""
        if not self.is_able:
            return True
        if self._claims < 0:
            self._claims = router.open_claims()
        try:
            # Of this process alone: pods that outlive it do not hold what its successor takes.
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError:
            return False
        return True

    def is_own(self, pod: PodSpec) -> bool:
        """Whether a pod gets a network of its own."""
        if has_host_network(pod):
            return False
        if self._is_shared and self._can_isolate(pod.container, is_addressed=pod.addressed):
            return True
        return is_serving(pod) and self._can_make(pod.container, is_addressed=pod.addressed)

    def _can_make(self, container: PodContainer, *, is_addressed: bool) -> bool:
        """A network of a user cannot be reached by address, as groups need it."""
        return (self.is_able or (bool(self._tools.helper) and not is_addressed)) and self._joins(container)

    def _can_isolate(self, container: PodContainer, *, is_addressed: bool) -> bool:
        """Whether it would be closed to other workloads too, and reach the world outside."""
        has_rules = bool(self._tools.nft) or not self.is_able
        return has_rules and self._can_make(container, is_addressed=is_addressed)

    def refusals(self, container: PodContainer, *, is_addressed: bool) -> list[tuple[str, str]]:
        """Why a pod of a shared server cannot have a network of its own, as (field, why)."""
        if not self._is_shared or self._may_share or container.fields.security.host_network:
            return []
        if self._can_isolate(container, is_addressed=is_addressed):
            return []
        return [("network", f"{self._obstacle(container)}; or start the server with --allow {SHARED_NETWORK}")]

    def _obstacle(self, container: PodContainer) -> str:
        """What stands between a pod and a network of its own."""
        if self._tools.lacks:
            return f"pods cannot have networks of their own here: {'; '.join(map(str, self._tools.lacks))}"
        if not self._joins(container):
            return "this runtime cannot give a container its own network: use podman, with a server that runs as root"
        return "pods that reach each other by name need a server that runs as root for networks of their own"

    @property
    def lacks(self) -> Sequence[Lack]:
        """What is missing for networks of pods, for the operator."""
        return self._tools.lacks

    def find_obstacles(self) -> Sequence[Lack]:
        """What keeps pods with networks of their own from the outside."""
        return egress.find_obstacles(self._tools)

    def describe(self, container: PodContainer, *, is_addressed: bool) -> str:
        """What separates a pod from the networks of others, for its condition."""
        if container.fields.security.host_network:
            return "it shares this machine's network, as requested"
        if self._is_shared and self._can_isolate(container, is_addressed=is_addressed):
            return _describe_own(self._tools)
        if self._is_shared:
            return f"it shares this machine's network (--allow {SHARED_NETWORK})"
        return ""

    def plan(self, pod: PodSpec) -> NetworkPlan | None:
        """The plan for a pod's own network; None if it shares the machine's. Raises Refused if it must not."""
        for field, why in self.refusals(pod.container, is_addressed=pod.addressed):
            raise Refused(f"{field}: {why}")
        if not self.is_own(pod):
            return None
        if not self.is_able:
            return self._plan_of_user(pod)
        known = self._plans.get(pod.pod_id)
        number = self._numbered(known.address) if known else self._free_number()
        address = self._address(number)
        files = [[_HOSTS, self._hosts_file(pod.workload_id)]]
        files += _resolver_files()
        plan = NetworkPlan(
            router=self._router_plan(),
            link=f"{self._devices}{number:04x}",
            group=self._group_of(pod.workload_id),
            address=address,
            gateway=self._address(1),
            hostname=pod.pod_name[:64],
            names=hosts.names_of(pod.pod_name, pod.workload_name, pod.namespace),
            workload=pod.workload_id,
            files=files,
        )
        self.register(pod.pod_id, plan)
        return plan

    def _router_plan(self) -> RouterPlan:
        subnet = f"10.{self._range}.0.0/{_PREFIX}"
        return RouterPlan(self.table, self._devices, self._address(1), subnet, self._tools.nft)

    def _group_of(self, workload_id: str) -> int:
        """A number that all pods of a workload have and no other workload."""
        groups = {plan.workload: plan.group for plan in self._plans.values()}
        if groups.get(workload_id):
            return groups[workload_id]
        used = set(groups.values())
        for _ in range(_MAX_GROUPS):
            number = self._next_group
            self._next_group = number % _MAX_GROUPS + 1
            if number not in used:
                return number
        raise Refused(f"{_MAX_GROUPS} workloads of this server have networks, the maximum")

    def _plan_of_user(self, pod: PodSpec) -> NetworkPlan:
        """A network without root, in which a pod knows only its own address."""
        names = hosts.names_of(pod.pod_name, pod.workload_name, pod.namespace)
        own = self._hosts_file(pod.pod_id)
        # Pasta takes what goes to the machine's own gateway as meant for the machine's loopback, slirp4netns what goes
        # to its own. What listens there is other people's on a shared server, except for services that say so.
        services = f"{INSIDE_PORTS[0]}-{INSIDE_PORTS[-1]}" if self._is_shared else ""
        if self._tools.slirp4netns:
            machine = "" if services else _SLIRP_GATEWAY
        else:
            machine = LOOPBACK if services else _default_gateway()
        members = [(LOOPBACK, names), *([(machine, [MACHINE])] if machine else [])]
        self._write(own, hosts.render_hosts(members, small_files.read(_HOSTS)))
        plan = NetworkPlan(
            pasta=self._tools.pasta,
            slirp4netns=self._tools.slirp4netns,
            services=services,
            address=LOOPBACK,
            gateway=LOOPBACK,
            hostname=pod.pod_name[:64],
            workload=pod.workload_id,
            files=[[_HOSTS, own], *_resolver_files()],
        )
        self.register(pod.pod_id, plan)
        return plan

    def register(self, pod_id: str, plan: NetworkPlan) -> None:
        """Reserve a pod's address and publish its names: of a new pod, or of one that a previous server started."""
        self._plans[pod_id] = plan
        if not plan.helper:
            self._write_hosts(plan.workload)

    def release(self, pod_id: str) -> None:
        """A pod has ended: its address is free, its names are gone."""
        plan = self._plans.pop(pod_id, None)
        if plan is None:
            return
        if plan.helper:
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
        return plan.address if plan is not None and not plan.helper else ""

    def is_closed(self, pod_id: str) -> bool:
        """Whether a pod's own network is reached from inside only."""
        plan = self._plans.get(pod_id)
        return plan is not None and bool(plan.helper)

    def sweep(self) -> None:
        """Remove what killed supervisors left: devices without a pod, and routers that nobody holds, others' too."""
        if not self.is_able:
            return
        # The links first: a plan is there before its link, so one that is made meanwhile is not taken for stale.
        own_devices = [name for name in os.listdir("/sys/class/net") if name.startswith(self._devices)]
        used_links = {plan.link for plan in tuple(self._plans.values())}
        stale = [name for name in own_devices if name not in used_links]
        with router.locked(), Links() as links:
            for name in stale:
                links.remove(name)
            router.remove_unused(links)

    def remarks(self, container: PodContainer, *, is_addressed: bool = False) -> list[tuple[str, str]]:
        """What works less well for a pod that serves than on a cluster, as (field, what)."""
        fields = container.fields
        field = "ports" if fields.ports else "exposedUrls" if fields.exposed_urls else ""
        if not field or fields.security.host_network:
            return []
        if not self._can_make(container, is_addressed=is_addressed):
            what = "pods share this machine's network: a second pod that uses the same port is refused"
            # What the tools lack is no reason for pods that would have no such network with them either.
            lacks = self._tools.lacks if self._joins(container) and not is_addressed else ()
            return [(field, "; ".join([what, *map(str, lacks)]))]
        if self.is_able and not self._tools.nft:
            return [(field, "its own network reaches this machine only: install nftables for connections beyond it")]
        if egress.find_resolver() is None:
            return [
                (field, "names outside its workload are not found: the name server of this machine is on its loopback")
            ]
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


def _describe_own(tools: NetworkTools) -> str:
    """What a pod's own network is, by the tool that makes it."""
    if tools.is_admin:
        return "a network of its own, which only pods of its workload and the server reach"
    if tools.pasta:
        return "a network of its own by pasta, which only the server reaches"
    return (
        "a network of its own by slirp4netns, which only the server reaches; "
        "with pasta it could reach the ClusterIP ports of other workloads"
    )


def _resolver_files() -> list[list[str]]:
    """The file of name servers that pods see in place of this machine's, if they cannot use that."""
    chosen = egress.find_resolver()
    return [[egress.RESOLV, chosen]] if chosen not in (None, egress.RESOLV) else []


def _default_gateway() -> str:
    """This machine's default gateway; empty without one."""
    for line in small_files.read("/proc/net/route").splitlines()[1:]:
        _, destination, gateway, *_ = line.split()
        if destination == "00000000" and gateway != "00000000":
            return ".".join(str(octet) for octet in int(gateway, 16).to_bytes(4, "little"))
    return ""


def _taken_ranges(devices: str) -> set[int]:
    """Second numbers of 10.N that this machine already has a route into, other than to our own pods."""
    ranges = set()
    for line in small_files.read("/proc/net/route").splitlines()[1:]:
        device, destination, *_ = line.split()
        octets = int(destination, 16).to_bytes(4, "little")
        if not device.startswith(devices) and octets[0] == 10:
            ranges.add(octets[1])
    return ranges
