"""Where a cluster keeps its files and which addresses it has; everything else asks here.

A cluster is one folder. Its control group and its network link are named after that folder, so that whatever is left of
it can be found and removed with nothing but the folder's path.
"""

import hashlib
import ipaddress
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.cluster.errors import ClusterError

#: Clusters on one machine have 100.64.0.0/16, 100.65.0.0/16 and so on: a range for carriers, used in no office.
FIRST_RANGE = 64
RANGES = 64
NODE = "worker-1"
DOMAIN = "cluster.local"


@dataclass(frozen=True)
class Layout:
    folder: Path
    number: int

    @property
    def name(self) -> str:
        return name_of(self.folder)

    @property
    def network(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(f"100.{FIRST_RANGE + self.number}.0.0/16")

    @property
    def machine(self) -> str:
        """This machine, as the cluster sees it: what runs here can be reached from pods at this address."""
        return str(self.network[1])

    @property
    def address(self) -> str:
        """The cluster, as this machine sees it: its API server and its one real node."""
        return str(self.network[2])

    @property
    def services(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(f"{self.network[64 * 256]}/18")

    @property
    def pods(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(f"{self.network[128 * 256]}/18")

    @property
    def dns(self) -> str:
        return str(self.services[10])

    @property
    def url(self) -> str:
        return f"https://{self.address}:6443"

    def path(self, *parts: str) -> Path:
        return self.folder.joinpath(*parts)

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.path("kubeconfig" if user == "admin" else f"{user}.kubeconfig")


def name_of(folder: Path) -> str:
    """Short enough for the name of a network link (15 letters)."""
    return "flc-" + hashlib.sha256(str(folder).encode()).hexdigest()[:8]


def load_layout(folder: Path) -> Layout | None:
    try:
        return Layout(folder, json.loads((folder / "layout.json").read_text())["number"])
    except (OSError, ValueError, KeyError):
        return None


def record_layout(layout: Layout) -> None:
    layout.path("layout.json").write_text(json.dumps({"number": layout.number}))


def free_number() -> int:
    """The first range that nothing on this machine has a route into."""
    shown = subprocess.run(["ip", "-json", "-4", "route", "show", "table", "all"], capture_output=True, check=True)
    taken = [ipaddress.IPv4Network(one["dst"]) for one in json.loads(shown.stdout) if _is_range(one)]
    for number in range(RANGES):
        wanted = Layout(Path("/"), number).network
        if not any(wanted.overlaps(one) for one in taken):
            return number
    raise ClusterError(f"no free range of addresses in 100.{FIRST_RANGE}.0.0/10; stop another cluster first")


def _is_range(route: dict[str, Any]) -> bool:
    return bool(route["dst"] != "default")
