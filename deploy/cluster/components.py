"""The command line of every program of a cluster, and where it says that it is healthy. Pure: a layout in, words out.

All run in a network of their own, so every port is fixed and none is taken. Called by `__main__`.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from deploy.cluster.layout import DOMAIN, Layout


@dataclass(frozen=True)
class Component:
    name: str
    command: list[str]
    #: Answers when the program is ready; the API server and containerd are asked in their own ways.
    health: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def render_etcd(layout: Layout, programs: Path) -> Component:
    flags = [
        f"--data-dir={layout.path('etcd')}",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--initial-advertise-peer-urls=http://127.0.0.1:2380",
        "--initial-cluster=default=http://127.0.0.1:2380",
        # What is written survives the program, not the machine: the cluster does not either.
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]
    return Component("etcd", [str(programs / "etcd"), *flags])


def render_apiserver(layout: Layout, programs: Path) -> Component:
    certificates = layout.path("certificates")
    flags = [
        "--etcd-servers=http://127.0.0.1:2379",
        "--bind-address=0.0.0.0",
        f"--advertise-address={layout.address}",
        "--secure-port=6443",
        f"--client-ca-file={certificates / 'ca.crt'}",
        f"--tls-cert-file={certificates / 'apiserver.crt'}",
        f"--tls-private-key-file={certificates / 'apiserver.key'}",
        f"--service-account-key-file={certificates / 'service-accounts.key'}",
        f"--service-account-signing-key-file={certificates / 'service-accounts.key'}",
        f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
        f"--token-auth-file={layout.path('tokens.csv')}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={layout.services}",
        "--allow-privileged",
        # KAI watches dynamic resources too.
        "--runtime-config=api/all=true",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-certificate-authority={certificates / 'ca.crt'}",
        f"--kubelet-client-certificate={certificates / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={certificates / 'apiserver-kubelet-client.key'}",
        # A tested program that misbehaves shall be seen, not slowed down here.
        "--max-requests-inflight=1000",
        "--max-mutating-requests-inflight=500",
    ]
    return Component("kube-apiserver", [str(programs / "kube-apiserver"), *flags])


def render_controller_manager(layout: Layout, programs: Path) -> Component:
    certificates = layout.path("certificates")
    config = layout.kubeconfig("controller-manager")
    flags = [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={certificates / 'service-accounts.key'}",
        f"--root-ca-file={certificates / 'ca.crt'}",
        f"--cluster-signing-cert-file={certificates / 'ca.crt'}",
        f"--cluster-signing-key-file={certificates / 'ca.key'}",
        "--leader-elect=false",
        # Its own brake is for clusters of thousands of nodes; here a hundred Jobs would wait for it.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]
    return Component("kube-controller-manager", [str(programs / "kube-controller-manager"), *flags])


def render_own_scheduler(layout: Layout, programs: Path) -> Component:
    """Kubernetes' own, for every pod that does not ask for KAI."""
    config = layout.kubeconfig("scheduler")
    flags = [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--leader-elect=false",
    ]
    return Component("kube-scheduler", [str(programs / "kube-scheduler"), *flags])


def render_scheduling(layout: Layout, programs: Path) -> list[Component]:
    """KAI without its operator, LeaderWorkerSet, and the stand-in for kubelets."""
    return [
        render_own_scheduler(layout, programs),
        render_scheduler(layout, programs, pool=""),
        *render_kai_controllers(layout, programs),
        render_lws(layout, programs / "lws"),
        Component("stand-in", [sys.executable, "-m", "deploy.cluster.stand_in", str(layout.folder)], "", at_root()),
    ]


def render_lws(layout: Layout, program: Path) -> Component:
    command = [str(program), f"--config={layout.path('lws.yaml')}"]
    return Component("lws", command, f"http://{layout.address}:8108/readyz", as_admin(layout))


def render_scheduler(layout: Layout, programs: Path, pool: str, port: int = 8110) -> Component:
    """One per node pool, as KAI's operator would run them; `port` and the next are its own."""
    flags = [
        "--schedule-period=250ms",
        f"--listen-address=:{port}",
        f"--plugin-server-port={port + 1}",
        f"--scheduler-conf={layout.path('kai-scheduler.yaml')}",
        f"--partition-label-value={pool}",
        # Who was evicted can be told from who failed.
        "--update-pod-eviction-condition",
        "--v=2",
    ]
    name = f"kai-scheduler-{pool}" if pool else "kai-scheduler"
    health = f"http://{layout.address}:{port}/metrics"
    return Component(name, [str(programs / "kai-scheduler"), *flags], health, as_admin(layout))


def render_kai_controllers(layout: Layout, programs: Path) -> list[Component]:
    host = f"http://{layout.address}"
    # The folder in which the webhook looks for its certificate begins with the folder for temporary files.
    admission = {**as_admin(layout), "TMPDIR": str(layout.path("kai-admission"))}

    def render(name: str, port: int, *flags: str) -> Component:
        command = [str(programs / name), *flags]
        return Component(
            name, command, f"{host}:{port}/readyz", admission if name == "kai-admission" else as_admin(layout)
        )

    return [
        render(
            "kai-binder",
            8103,
            "--metrics-bind-address=0",
            "--health-probe-bind-address=:8103",
            "--fake-gpu-nodes",
            "--volume-binding-timeout-seconds=60",
        ),
        render("kai-podgrouper", 8104, "--metrics-bind-address=0", "--health-probe-bind-address=:8104"),
        render(
            "kai-podgroupcontroller",
            8105,
            "--health-probe-bind-address=:8105",
            "--skip-controller-name-validation",
            "--enable-podgroup-webhook=false",
        ),
        Component(
            "kai-queuecontroller",
            [
                str(programs / "kai-queuecontroller"),
                "--metrics-listen-address=:8106",
                "--skip-controller-name-validation",
                "--enable-webhook=false",
            ],
            f"{host}:8106/metrics",
            as_admin(layout),
        ),
        render(
            "kai-admission",
            8107,
            "--metrics-bind-address=0",
            "--health-probe-bind-address=:8107",
            "--webhook-addr=9443",
            "--gpu-sharing-enabled",
        ),
    ]


def as_admin(layout: Layout) -> dict[str, str]:
    return {"KUBECONFIG": str(layout.kubeconfig())}


def at_root() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).parents[2])}


def render_scheduler_settings() -> dict[str, object]:
    """The plugins that KAI's operator lists for a shard that packs; the program's built-in list is shorter."""
    names = (
        "predicates proportion priority nodeavailability resourcetype podaffinity elastic kubeflow ray subgrouporder"
    )
    later = "taskorder nominatednode dynamicresources minruntime topology snapshot gpupack"
    plugins: list[dict[str, object]] = [{"name": name} for name in f"{names} {later}".split()]
    plugins.append({"name": "nodeplacement", "arguments": {"cpu": "binpack", "gpu": "binpack"}})
    plugins.append({"name": "gpusharingorder"})
    return {"actions": "allocate, consolidation, reclaim, preempt, stalegangeviction", "tiers": [{"plugins": plugins}]}


def render_lws_settings(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": 9543, "certDir": str(layout.path("certificates", "lws"))},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": ":8108"},
        "clientConnection": {"qps": 500, "burst": 1000},
    }
