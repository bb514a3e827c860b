"""What can be added to a running cluster: Kubeflow's operators, Knative, a newer LeaderWorkerSet, or definitions alone.
And taken away again.

Called by `up --with`, `add`, `drop` and by tests. Nothing of it is built or installed unless somebody asks.
"""

import base64
import json
import sys
import time

from deploy.cluster import build, control, knative, objects
from deploy.cluster.api import Api, ApiError, path_of
from deploy.cluster.cluster import Cluster, has_definitions, launch, wait_until_healthy
from deploy.cluster.components import Component, as_admin, at_root, render_lws, render_scheduler
from deploy.cluster.layout import Layout
from deploy.cluster.objects import Object, render, render_webhook
from deploy.cluster.sandbox import wait_for

PATIENCE = 180.0
#: Whose definitions each brings; where the name is not theirs, programs run for them too.
OPTIONS: dict[str, tuple[str, ...]] = {
    "kubeflow": ("training-crds",),
    "mpi": ("mpi-crds",),
    "knative": ("knative-crds", "networking-crds", "caching-crds"),
    "kubeflow-crds": ("training-crds", "mpi-crds"),
    "knative-crds": ("knative-crds",),
    # In the place of the one that every cluster has.
    "lws-newest": ("lws-newest-crds",),
}
_OLDER = "mpijobs.kubeflow.org"
_GROUPER = "kai-podgrouper"
#: What PyTorch's workers do until their master has an address; the operator's own image is in a registry.
_WAITING = [
    "python3",
    "-c",
    "import socket, time\n"
    "while True:\n"
    "    try: raise SystemExit(print(socket.gethostbyname('{{.MasterAddr}}')))\n"
    "    except OSError: time.sleep(0.3)\n",
]
_KINDS = ("pytorchjob", "tfjob", "xgboostjob", "jaxjob")


def add(cluster: Cluster, name: str) -> None:
    """Build what is missing, install the definitions, start the programs, wait until they are ready."""
    layout, api = cluster.layout, cluster.api()
    build.build((name,))
    if name == "lws-newest":
        replace_lws(cluster, name)
        return
    for definition in load_definitions(name):
        api.apply(definition)
    wait_for(lambda: has_definitions(api), f"the definitions of {name}", PATIENCE)
    if name == "knative":
        knative.provide_images(layout)
    for body in load_objects(name):
        api.apply(body)
    waiting = {"name": "init-pytorch", "image": "python:3.11", "command": _WAITING}
    layout.path("pytorch-waiting.yaml").write_text(json.dumps([waiting]))
    started = render_programs(layout, name)
    for one in started:
        launch(layout, one)
    wait_until_healthy(layout, started)
    for hooks in render_webhooks(layout, name):
        api.apply(hooks)
    if name == "knative":
        wait_for(lambda: knative.is_ready(api), "Knative's pods; see kubectl get pods -n knative-serving", PATIENCE)


def replace_lws(cluster: Cluster, program: str) -> None:
    """One LeaderWorkerSet by another, with its definitions; the objects stay, as in an upgrade."""
    layout, api, files = cluster.layout, cluster.api(), build.place_of(f"{program}-crds")
    control.drop(layout.folder, "lws")
    for definition in objects.load_definitions(files.parent, files.name):
        if definition["kind"] == "CustomResourceDefinition":
            api.apply(definition)
    wait_for(lambda: has_definitions(api), f"the definitions of {program}", PATIENCE)
    component = render_lws(layout, build.place_of(program))
    launch(layout, component)
    wait_until_healthy(layout, [component])


def drop(cluster: Cluster, name: str) -> None:
    """The programs end, and the definitions go with all objects of theirs."""
    layout, api = cluster.layout, cluster.api()
    if name == "lws-newest":
        replace_lws(cluster, "lws")
        return
    for hooks in render_webhooks(layout, name):
        api.call("DELETE", path_of(hooks))
    known = control.observe(layout.folder)
    for one in [one for one in render_programs(layout, name) if one.name in known]:
        control.drop(layout.folder, one.name)
    # Objects before the programs that run in pods: some wait for those to let them go.
    for group in (load_definitions(name), list(reversed(load_objects(name)))):
        for body in group:
            api.call("DELETE", path_of(body))
        wait_until_gone(api, group)
    if _GROUPER in known:
        # It goes on watching kinds that are gone, and takes minutes to find them when they come again.
        control.kill(layout.folder, _GROUPER)
        restarts = known[_GROUPER]["restarts"]
        wait_for(lambda: control.observe(layout.folder)[_GROUPER]["restarts"] > restarts, f"{_GROUPER} to be back")


def add_pool(cluster: Cluster, pool: str) -> None:
    """A scheduler for a node pool, where none runs yet."""
    layout, programs = cluster.layout, build.folder()
    running = control.observe(layout.folder)
    port = 8120 + 10 * sum(name.startswith("kai-scheduler-") for name in running)
    shard = render_scheduler(layout, programs, pool, port)
    if shard.name not in running:
        launch(layout, shard)
        wait_until_healthy(layout, [shard])


def wait_until_gone(api: Api, bodies: list[Object]) -> None:
    def are_gone() -> bool:
        return not [body for body in bodies if is_left(api, path_of(body))]

    wait_for(are_gone, "the end of what was removed", PATIENCE)


def is_left(api: Api, path: str) -> bool:
    """A definition that was new when it was removed may not be listed yet. The API server then looks at it again after
    pauses that grow to minutes, unless something of it changes."""
    found = api.call("GET", path)
    conditions = found.get("status", {}).get("conditions", ()) if found else ()
    if any(one.get("reason") == "InstanceDeletionFailed" for one in conditions):
        noted = {"metadata": {"annotations": {"cluster.fairlead/looked-at": f"{time.time():.0f}"}}}
        try:
            api.call("PATCH", path, noted, "application/merge-patch+json")
        except ApiError as error:
            if error.status != 404:
                raise
    return found is not None


def load_definitions(name: str) -> list[Object]:
    """Of MPI's job the version of its own operator, not the older one of the training operator."""
    found: list[Object] = []
    for files in OPTIONS[name]:
        place = build.place_of(files)
        for body in objects.load_definitions(place.parent, place.name):
            if body.get("kind") != "CustomResourceDefinition":
                continue
            if files != "training-crds" or body["metadata"]["name"] != _OLDER:
                found.append(body)
    return found


def load_objects(name: str) -> list[Object]:
    """What an option brings beside definitions and webhooks."""
    return knative.load_objects() if name == "knative" else []


def render_programs(layout: Layout, name: str) -> list[Component]:
    host = f"http://{layout.address}"
    if name == "mpi":
        flags = ["--health-probe-bind-address=:8115", "--kube-api-qps=50", "--kube-api-burst=100"]
        command = [str(build.place_of("mpi-operator")), *flags]
        return [Component("mpi-operator", command, f"{host}:8115/readyz", as_admin(layout))]
    if name == "knative":
        command = [sys.executable, "-m", "deploy.cluster.gateway", str(layout.folder)]
        return [Component("knative-gateway", command, "", at_root())]
    if name != "kubeflow":
        return []
    flags = [
        f"--pytorch-init-container-template-file={layout.path('pytorch-waiting.yaml')}",
        f"--certificates={layout.path('certificates', 'training-operator')}",
        "--webhook-port=9643",
        "--health-probe-bind-address=:8114",
    ]
    command = [str(build.place_of("training-operator")), *flags]
    return [Component("training-operator", command, f"{host}:8114/readyz", as_admin(layout))]


def render_webhooks(layout: Layout, name: str) -> list[Object]:
    if name != "kubeflow":
        return []
    bundle = base64.b64encode(layout.path("certificates", "ca.crt").read_bytes()).decode()
    hooks = [
        render_webhook(
            f"validator.{kind}.training-operator.kubeflow.org",
            f"https://127.0.0.1:9643/validate-kubeflow-org-v1-{kind}",
            bundle,
            ["CREATE", "UPDATE"],
            of=("kubeflow.org", f"{kind}s"),
        )
        for kind in _KINDS
    ]
    version = "admissionregistration.k8s.io/v1"
    return [render(version, "ValidatingWebhookConfiguration", "training-operator", webhooks=hooks)]
