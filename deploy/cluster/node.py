"""The one real node: settings and command lines of containerd, the kubelet, kube-proxy and CoreDNS, and its images.

Pure but for writing the settings and the archive of images. Called by `cluster.py`.
"""

import hashlib
import json
import subprocess
import sys
import sysconfig
from pathlib import Path

from deploy.cluster import build, images
from deploy.cluster.api import Api
from deploy.cluster.components import Component
from deploy.cluster.errors import ClusterError
from deploy.cluster.images import Image, Layer, write_archive
from deploy.cluster.layout import DOMAIN, NODE, Layout
from deploy.cluster.nodes import gpu_labels
from deploy.cluster.objects import render_corefile

PAUSE = "registry.k8s.io/pause:3.10"
#: Wherever Debian or others put them.
PLUGIN_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin")
GPUS, GPU_MEMORY_MIB = 8, 16384
MAX_PODS = 250
#: program -> Debian package
TOOLS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "busybox": "busybox-static",
}


def write_settings(layout: Layout) -> None:
    layout.path("cni").mkdir()
    layout.path("containerd.toml").write_text(render_containerd_settings(layout))
    layout.path("cni", "10-cluster.conflist").write_text(json.dumps(render_network(layout), indent=2))
    layout.path("kubelet.yaml").write_text(json.dumps(render_kubelet_settings(layout), indent=2))
    layout.path("Corefile").write_text(render_corefile(layout))
    layout.path("resolv.conf").write_text("")


def render_containerd_settings(layout: Layout) -> str:
    plugins = next((folder for folder in PLUGIN_FOLDERS if Path(folder).exists()), PLUGIN_FOLDERS[0])
    return f"""version = 2
root = "{layout.path("containerd")}"
state = "/run/containerd"
# Taken off: it would look for image signatures, disks and daemons that are not there.
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "{layout.path("containerd.sock")}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/run/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{layout.path("registries")}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{layout.path("cni")}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def render_network(layout: Layout) -> dict[str, object]:
    """Every pod on a cable of its own: what goes between two pods passes the node's rules, so services work there."""
    addresses = {
        "type": "host-local",
        "dataDir": str(layout.path("addresses")),
        "ranges": [[{"subnet": str(layout.pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": addresses},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return {"cniVersion": "0.4.0", "name": "cluster", "plugins": plugins}


def render_kubelet_settings(layout: Layout) -> dict[str, object]:
    certificates = layout.path("certificates")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificates / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificates / "kubelet.crt"),
        "tlsPrivateKeyFile": str(certificates / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{layout.path('containerd.sock')}",
        "clusterDNS": [layout.dns],
        "clusterDomain": DOMAIN,
        "resolvConf": str(layout.path("resolv.conf")),
        "podLogsDir": str(layout.path("pod-logs")),
        "volumePluginDir": str(layout.path("volume-plugins")),
        "maxPods": MAX_PODS,
        # Works with both layouts of control groups, also where they are mixed; limits of containers hold all the same.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        # The machine's disk and memory are not the cluster's to free.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
    }


def render_containerd(layout: Layout) -> Component:
    return Component("containerd", ["containerd", "--config", str(layout.path("containerd.toml"))])


def render_node(layout: Layout, programs: Path) -> list[Component]:
    labels = ",".join(f"{name}={value}" for name, value in gpu_labels(GPUS, GPU_MEMORY_MIB).items())
    kubelet = [
        f"--config={layout.path('kubelet.yaml')}",
        f"--kubeconfig={layout.kubeconfig('kubelet')}",
        f"--hostname-override={NODE}",
        f"--node-ip={layout.address}",
        f"--root-dir={layout.path('kubelet')}",
        f"--node-labels={labels}",
    ]
    proxy = [
        f"--kubeconfig={layout.kubeconfig('proxy')}",
        f"--hostname-override={NODE}",
        "--proxy-mode=nftables",
        f"--cluster-cidr={layout.pods}",
        f"--bind-address={layout.address}",
        "--conntrack-max-per-core=0",
        "--healthz-bind-address=0.0.0.0:10256",
    ]
    return [
        Component("kubelet", [str(programs / "kubelet"), *kubelet]),
        Component("kube-proxy", [str(programs / "kube-proxy"), *proxy], f"http://{layout.address}:10256/healthz"),
        Component(
            "coredns",
            [str(programs / "coredns"), "-conf", str(layout.path("Corefile"))],
            f"http://{layout.address}:8112/ready",
        ),
    ]


def find_images() -> Path:
    """The archive in the cache; made anew when it would hold something else."""
    told = f"{sys.version} {Path(__file__).read_text()} {Path(images.__file__).read_text()}"
    archive = build.CACHE / "images" / f"{hashlib.sha256(told.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        make_images(archive)
    return archive


def import_images(layout: Layout, archive: Path) -> None:
    run_ctr(layout, "images", "import", str(archive))


def has_containerd(layout: Layout) -> bool:
    return run_ctr(layout, "version", check=False)


def run_ctr(layout: Layout, *words: str, check: bool = True) -> bool:
    command = ["ctr", "--address", str(layout.path("containerd.sock")), "--namespace", "k8s.io", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode:
        raise ClusterError(f"`ctr {' '.join(words)}` failed: {done.stderr.strip()}")
    return done.returncode == 0


def is_ready(api: Api) -> bool:
    """Ready, and offering its GPUs."""
    found = api.call("GET", f"/api/v1/nodes/{NODE}")
    status = found["status"] if found else {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
    return conditions.get("Ready") == "True" and status.get("allocatable", {}).get("nvidia.com/gpu") == str(GPUS)


def make_images(target: Path) -> None:
    """What pods run here: busybox (also as pause and as KAI's reservation) and Python with busybox beside it."""
    busybox = make_busybox_layer()
    path = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    plain = {"Env": [path], "Cmd": ["sh"]}
    write_archive(
        target,
        [
            Image(("docker.io/library/busybox:latest", "docker.io/library/busybox:1.35"), (busybox,), plain),
            Image(("docker.io/library/ubuntu:latest", "docker.io/library/ubuntu:22.04"), (busybox,), plain),
            Image((PAUSE,), (busybox,), {"Env": [path], "Entrypoint": ["sleep", "infinity"]}),
            Image(
                ("docker.io/library/python:3.11", "docker.io/library/python:latest"),
                (busybox, make_python_layer()),
                {"Env": [path], "Cmd": ["python3"]},
            ),
        ],
    )


def make_busybox_layer() -> Layer:
    layer = Layer()
    layer.files["/bin/busybox"] = Path("/bin/busybox").resolve()
    listed = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    layer.links = {f"/bin/{name}": "busybox" for name in listed if name != "busybox"}
    layer.folders = {"/tmp": 0o1777, "/root": 0o700, "/etc": 0o755, "/var/tmp": 0o1777, "/home": 0o755}  # noqa: S108 - in the image
    layer.texts = {
        "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
        "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
        "/etc/nsswitch.conf": "hosts: files dns\n",
    }
    return layer


def make_python_layer() -> Layer:
    """The interpreter that runs this, its standard library, and every shared library that they load."""
    layer = Layer()
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix, "installed_base": sys.base_prefix}
    library = Path(sysconfig.get_path("stdlib", vars=base))
    layer.add_tree(
        library, str(library), ("__pycache__", "test", "idlelib", "tkinter", "site-packages", "dist-packages")
    )
    for shared in library.rglob("*.so"):
        layer.add_program(shared, str(shared))
    executable = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]  # CPython has it
    layer.add_program(executable, str(executable))
    layer.add_program(Path("/usr/bin/getent"))
    for name in ("python3", "python"):
        layer.links[f"/usr/local/bin/{name}"] = str(executable)
    return layer
