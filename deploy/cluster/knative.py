"""Knative Serving as its own manifests install it: controller, webhook, autoscaler and activator run in pods.

Images are made of the programs that `build.py` built. What differs from Knative's own settings is written here; the one
part that is not Knative's is the gateway (`gateway.py`). Called by `options.py`.
"""

import hashlib
from pathlib import Path

import yaml

from deploy.cluster import build
from deploy.cluster.api import Api
from deploy.cluster.images import Image, Layer, write_archive
from deploy.cluster.layout import NODE, Layout
from deploy.cluster.node import import_images
from deploy.cluster.objects import Object

SPACE = "knative-serving"
_SOURCE = "ko://knative.dev/serving/cmd/"
_TAG = "built-here"
_USER = "65532"
#: Of Knative's own manifests: in this order, without those that want a service of metrics.
_PARTS = ("100-namespace.yaml", "200-serviceaccount.yaml", "200-roles", "configmaps", "webhooks", "deployments")
#: What a pod may say beyond Knative's first intent; people switch these on for KAI and for GPUs.
_FEATURES = (
    "affinity fieldref init-containers nodeselector persistent-volume-claim persistent-volume-write priorityclassname "
    "runtimeclassname schedulername securitycontext tolerations"
)
#: Seconds in which pods of Knative's end; its own are minutes.
_GRACE = 2


def load_objects() -> list[Object]:
    """All but the definitions, in the order in which they are made."""
    place = build.place_of("knative-core")
    paths = [path for part in _PARTS for path in _files(place / part) if not path.name.endswith("-hpa.yaml")]
    paths.append(build.place_of("networking-crds") / "config-network.yaml")
    found = [body for path in paths for body in yaml.load_all(path.read_text(), yaml.CSafeLoader) if body]
    return [adapt(body) for body in sorted(found, key=lambda body: body["kind"] == "Deployment")]


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.yaml")) if path.is_dir() else [path]


def adapt(body: Object) -> Object:
    """As this cluster needs it: images that are here, no room reserved, nobody asked who has the images of users."""
    if body["kind"] == "Deployment":
        pod = body["spec"]["template"]["spec"]
        pod |= {"terminationGracePeriodSeconds": _GRACE, "nodeName": NODE}
        for container in pod["containers"]:
            container["image"] = image_of(container["image"].removeprefix(_SOURCE))
            container.pop("resources", None)
    settings = {
        "config-deployment": {
            "queue-sidecar-image": image_of("queue"),
            "queue-sidecar-cpu-request": "10m",
            "registries-skipping-tag-resolving": "index.docker.io,ko.local,localhost",
        },
        "config-features": {f"kubernetes.podspec-{name}": "enabled" for name in _FEATURES.split()},
        "config-network": {"ingress-class": "stand-in.cluster.fairlead"},
    }
    if body["kind"] == "ConfigMap" and body["metadata"]["name"] in settings:
        given = {name: value for name, value in body.get("data", {}).items() if not value.startswith("ko://")}
        body["data"] = given | settings[body["metadata"]["name"]]
    return body


def image_of(program: str) -> str:
    return f"ko.local/knative-{program}:{_TAG}"


def provide_images(layout: Layout) -> None:
    """Of each program an image with nothing else in it; the archive stays in the cache."""
    folder = build.place_of("knative-core").parent
    told = f"{folder.name} {Path(__file__).read_text()}"
    archive = build.CACHE / "images" / f"knative-{hashlib.sha256(told.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        write_archive(archive, [make_image(name) for name in build.KNATIVE])
    import_images(layout, archive)


def make_image(program: str) -> Image:
    layer = Layer(files={f"/ko-app/{program}": build.place_of(f"knative-{program}")}, folders={"/tmp": 0o1777})  # noqa: S108 - in the image
    return Image((image_of(program),), (layer,), {"Entrypoint": [f"/ko-app/{program}"], "User": _USER})


def is_ready(api: Api) -> bool:
    """All of its Deployments are there, and its webhook is asked by the API server."""
    listed = api.call("GET", f"/apis/apps/v1/namespaces/{SPACE}/deployments")["items"]
    hooks = api.call("GET", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")["items"]
    asked = [hook for one in hooks if "serving.knative.dev" in one["metadata"]["name"] for hook in one["webhooks"]]
    return (
        len(listed) == len(build.KNATIVE) - 1
        and all(one["status"].get("availableReplicas") for one in listed)
        and all(hook["clientConfig"].get("caBundle") for hook in asked)
    )
