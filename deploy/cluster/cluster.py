"""Starting, looking at and ending a cluster: the order of things, on top of all other modules here.

Called by `__main__` (make cluster-up, -status, -down) and by tests, which start clusters of their own in folders of
their own. Needs root: namespaces, mounts and network devices are the kernel's.
"""

import contextlib
import fcntl
import http.client
import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.cluster import build, components, control, node, objects
from deploy.cluster.api import Api
from deploy.cluster.certificates import write_certificates, write_users
from deploy.cluster.components import Component
from deploy.cluster.errors import ClusterError
from deploy.cluster.layout import Layout, free_number, load_layout, name_of, record_layout
from deploy.cluster.parts import up_to
from deploy.cluster.sandbox import close_sandbox, has_groups, is_open, open_sandbox, remove_link, wait_for

#: A loaded machine with two cores starts everything in well under this.
PATIENCE = 180.0
#: Needed by every cluster: program -> Debian package
TOOLS = {"unshare": "util-linux", "ip": "iproute2", "mount": "mount", "hostname": "hostname"}


@dataclass(frozen=True)
class Cluster:
    """A running one."""

    layout: Layout

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig()

    def api(self) -> Api:
        return Api(self.kubeconfig)


def up(folder: Path, last_part: str = "scheduling", pools: Sequence[str] = ()) -> Cluster:
    """What runs in that folder already is taken as it is; what is left of a dead one is removed first."""
    folder = folder.absolute()
    require_tools(TOOLS | (node.TOOLS if "containers" in up_to(last_part) else {}))
    running = find(folder)
    if running is not None:
        return running
    down(folder)
    build.build(up_to(last_part))
    with open(build.CACHE / "ranges.lock", "w") as lock:
        # Two that start at once must not choose the same range of addresses; a route holds it from then on.
        fcntl.flock(lock, fcntl.LOCK_EX)
        layout = prepare(folder)
        open_sandbox(layout)
    try:
        start(layout, last_part, pools)
    except BaseException:
        # What was written to the logs says why; the folder stays until the next `up` or `down`.
        close_sandbox(folder, keep_files=True)
        raise
    layout.path("ready").touch()
    return Cluster(layout)


def find(folder: Path) -> Cluster | None:
    layout = load_layout(folder)
    if layout is None or not layout.path("ready").exists() or not is_open(folder):
        return None
    return Cluster(layout)


def down(folder: Path) -> None:
    require_root()
    folder = folder.absolute()
    if folder.exists() and not is_own(folder):
        raise ClusterError(f"{folder} is not a cluster's folder; nothing was removed")
    close_sandbox(folder)


def is_own(folder: Path) -> bool:
    """Whoever removed its files before its processes leaves its control groups, which are named after the folder."""
    return (folder / "layout.json").exists() or not any(folder.iterdir()) or has_groups(name_of(folder))


def require_root() -> None:
    if os.geteuid() != 0:
        raise ClusterError("A cluster needs root: it makes namespaces, mounts and network devices. Try with sudo.")


def require_tools(tools: dict[str, str]) -> None:
    require_root()
    missing = sorted({package for program, package in tools.items() if shutil.which(program) is None})
    if missing:
        raise ClusterError(f"Missing here: {', '.join(missing)}. Install them: apt-get install {' '.join(missing)}")


def prepare(folder: Path) -> Layout:
    folder.mkdir(parents=True, exist_ok=True)
    remove_link(name_of(folder))
    layout = Layout(folder, free_number())
    record_layout(layout)
    layout.path("logs").mkdir()
    write_certificates(layout)
    write_users(layout)
    hand_over(layout.kubeconfig(), os.environ)
    # Where KAI's webhook looks for its certificate, below its folder for temporary files.
    served = layout.path("kai-admission", "k8s-webhook-server", "serving-certs")
    shutil.copytree(layout.path("certificates", "kai-admission"), served)
    layout.path("kai-scheduler.yaml").write_text(json.dumps(components.render_scheduler_settings()))
    layout.path("lws.yaml").write_text(json.dumps(components.render_lws_settings(layout)))
    return layout


def hand_over(path: Path, environment: Mapping[str, str]) -> None:
    """To whoever called us by sudo; they could have taken it."""
    if "SUDO_UID" in environment:
        os.chown(path, int(environment["SUDO_UID"]), int(environment.get("SUDO_GID", -1)))


def start(layout: Layout, last_part: str, pools: Sequence[str]) -> None:
    programs = build.folder()
    wait_for(lambda: control.is_running(layout.folder), f"the supervisor; see {layout.path('logs')}")
    launch(layout, components.render_etcd(layout, programs))
    launch(layout, components.render_apiserver(layout, programs))
    parts = up_to(last_part)
    with contextlib.closing(Api(layout.kubeconfig())) as api:
        wait_for(api.is_ready, f"kube-apiserver; see {layout.path('logs')}", PATIENCE)
        if "scheduling" in parts:
            start_scheduling(layout, programs, api, pools)
        if "containers" in parts:
            start_node(layout, programs, api)


def start_scheduling(layout: Layout, programs: Path, api: Api, pools: Sequence[str]) -> None:
    launch(layout, components.render_controller_manager(layout, programs))
    for definition in objects.load_definitions(programs, "kai-crds", "lws-crds"):
        api.apply(definition)
    shards = [components.render_scheduler(layout, programs, pool, 8120 + 10 * at) for at, pool in enumerate(pools)]
    started = [*components.render_scheduling(layout, programs), *shards]
    wait_for(lambda: has_definitions(api), "the custom resource definitions", PATIENCE)
    for one in started:
        launch(layout, one)
    for wanted in objects.render_objects(layout):
        api.apply(wanted)
    wait_for(lambda: has_service_account(api), "the controller manager", PATIENCE)
    wait_until_healthy(layout, started)


def start_node(layout: Layout, programs: Path, api: Api) -> None:
    node.write_settings(layout)
    launch(layout, node.render_containerd(layout))
    images = node.find_images()
    wait_for(lambda: node.has_containerd(layout), "containerd", PATIENCE)
    node.import_images(layout, images)
    for wanted in objects.render_name_service(layout):
        api.apply(wanted)
    started = node.render_node(layout, programs)
    for one in started:
        launch(layout, one)
    wait_until_healthy(layout, started)
    wait_for(lambda: node.is_ready(api), f"the node; see {layout.path('logs', 'kubelet.log')}", PATIENCE)


def has_definitions(api: Api) -> bool:
    found = api.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    return all(
        any(one["type"] == "Established" and one["status"] == "True" for one in each["status"]["conditions"] or ())
        for each in found
    )


def has_service_account(api: Api) -> bool:
    """Pods cannot be made in a namespace before the controller manager gave it this."""
    return api.call("GET", "/api/v1/namespaces/default/serviceaccounts/default") is not None


def launch(layout: Layout, component: Component) -> None:
    control.start(layout.folder, component.name, component.command, component.environment)


def wait_until_healthy(layout: Layout, started: list[Component]) -> None:
    for one in started:
        if one.health:
            log = layout.path("logs", f"{one.name}.log")
            wait_for(lambda url=one.health: answers(url), f"{one.name}; see {log}", PATIENCE)  # type: ignore[misc]  # bound now


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        # KAI's binder has a port for checks and no check behind it.
        with error:
            return error.code == 404
    except (urllib.error.URLError, OSError, http.client.HTTPException):
        return False


def describe(folder: Path) -> tuple[str, bool]:
    """A table of programs, and whether all of them run."""
    cluster = find(folder.absolute())
    if cluster is None:
        return f"no cluster runs in {folder}\n", False
    programs = control.observe(cluster.layout.folder)
    lines = [f"{'PROGRAM':<26}{'STATE':<12}{'RESTARTS':<10}UP"]
    for name, one in programs.items():
        lines.append(f"{name:<26}{describe_state(one):<12}{one['restarts']:<10}{one['seconds']:.0f} s")
    lines.append(f"\nexport KUBECONFIG={cluster.kubeconfig}")
    lines.append(f"API server {cluster.layout.url}; this machine is {cluster.layout.machine} to pods")
    return "\n".join(lines) + "\n", all(one["pid"] for one in programs.values())


def describe_state(program: dict[str, Any]) -> str:
    """A program that was told to stop ended by our own signal, which says nothing of it."""
    if program["pid"]:
        return "running"
    return f"ended {program['last_exit']}" if program["wanted"] else "stopped"
