"""Pods that answer requests, as a Service of Knative: it makes the pods, as many as the load asks for. Pure.

`render.py` calls it where the cluster has Knative and it can do all that is asked for. Requests come through our own
proxy, which checks who may send them, so that the Service is for the cluster alone.
"""

from collections.abc import Sequence
from typing import Any

from fairlead.engines.kubernetes.client.resources import KNATIVE
from fairlead.engines.kubernetes.render.context import RenderContext
from fairlead.engines.kubernetes.render.runners import PodTemplate, metadata_of_runner
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.scaling import REQUEST_TIMEOUT, Measure, Scaling
from fairlead.model.records.revision import Stage

_SCALING, _SERVING = "autoscaling.knative.dev", "serving.knative.dev"
#: On Services that are reached inside the cluster alone, as all of ours are.
VISIBILITY = "networking.knative.dev/visibility"
_METRICS = {Measure.CONCURRENCY: "concurrency", Measure.THROUGHPUT: "rps"}
#: What Knative does by itself, or has other words for.
_LEFT_OUT = ("restartPolicy", "terminationGracePeriodSeconds")
_SECOND = 1000
#: Switches of Knative's without which it takes no pod of ours: who schedules it, its priority, its node's name.
FEATURES = tuple(f"kubernetes.podspec-{name}" for name in ("schedulername", "priorityclassname", "fieldref"))


def is_knative(podsets: Sequence[PodSet]) -> bool:
    """Whether Knative could run them. It knows no latency; and only our own proxy wakes what sleeps."""
    return bool(podsets) and all(
        podset.serving_port
        and podset.scaling is not None
        and podset.scaling.min_pods
        and podset.scaling.measure in _METRICS
        for podset in podsets
    )


def render_service(place: RenderContext, shapes: Sequence[PodTemplate]) -> dict[str, Any]:
    """One Service, whose template is the newest revision that is wanted. The one before serves until that is ready."""
    staged = {one.podset.stage: one for one in reversed(shapes)}
    shape = staged.get(Stage.STARTING) or staged.get(Stage.SERVING) or shapes[0]
    scaling = shape.podset.scaling or Scaling()
    metadata = metadata_of_runner(place, shape)
    metadata["name"] = place.name
    metadata["labels"] = {**metadata["labels"], VISIBILITY: "cluster-local"}
    template = shape.template["metadata"]
    annotations = {**template.get("annotations", {}), **_annotations(scaling)}
    timeout = scaling.request_timeout // _SECOND
    pod = {name: value for name, value in shape.template["spec"].items() if name not in _LEFT_OUT}
    return {
        "apiVersion": KNATIVE.api,
        "kind": KNATIVE.kind,
        "metadata": metadata,
        "spec": {
            "template": {
                "metadata": {**template, "annotations": annotations},
                "spec": {
                    **pod,
                    "containers": [_container(shape)],
                    "containerConcurrency": scaling.concurrency_limit,
                    "responseStartTimeoutSeconds": timeout,
                    "timeoutSeconds": max(timeout, REQUEST_TIMEOUT // _SECOND),
                },
            }
        },
    }


def _annotations(scaling: Scaling) -> dict[str, str]:
    return {
        f"{_SCALING}/min-scale": str(scaling.min_pods),
        f"{_SCALING}/max-scale": str(scaling.max_pods),
        f"{_SCALING}/initial-scale": str(max(scaling.initial, scaling.min_pods)),
        # Knative takes no 1, which it means by itself.
        **({f"{_SCALING}/activation-scale": str(scaling.activation)} if scaling.activation > 1 else {}),
        f"{_SCALING}/metric": _METRICS[scaling.measure],
        # The part of the threshold from which on pods are added is in the target already.
        f"{_SCALING}/target": f"{scaling.target:g}",
        f"{_SCALING}/target-utilization-percentage": "100",
        f"{_SCALING}/scale-down-delay": f"{scaling.delay // _SECOND}s",
        f"{_SERVING}/progress-deadline": f"{scaling.initialization // _SECOND}s",
    }


def _container(shape: PodTemplate) -> dict[str, Any]:
    """With its one port; Knative asks by itself whether somebody listens there."""
    podset = shape.podset
    main = dict(shape.template["spec"]["containers"][0])
    urls = podset.container.fields.exposed_urls
    is_grpc = any(url.protocol == "grpc" for url in urls if url.container == podset.serving_port)
    main["ports"] = [{"name": "h2c" if is_grpc else "http1", "containerPort": podset.serving_port}]
    for name in ("tty", "stdin"):
        main.pop(name, None)
    probe = main.get("readinessProbe")
    if probe is not None:
        # It may not name another port than that one.
        handler = "httpGet" if "httpGet" in probe else "tcpSocket"
        asked = {name: value for name, value in probe[handler].items() if name != "port"}
        main["readinessProbe"] = {**probe, handler: {**asked, "port": podset.serving_port}}
    return main
