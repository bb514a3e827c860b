"""Pods that serve requests, as a Service of Knative, which scales them with the load. Pure.

Used if the cluster has Knative and Knative can do everything that the workload asks for. Requests come through our own
proxy, which checks the caller, so the Service is reachable inside the cluster only.
"""

from collections.abc import Sequence

from fairlead.engines.kubernetes.client.resources import KNATIVE, Manifest
from fairlead.engines.kubernetes.render.context import RenderContext
from fairlead.engines.kubernetes.render.runners import PodTemplate, metadata_of_runner
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.scaling import REQUEST_TIMEOUT, Measure, Scaling
from fairlead.model.records.revision import Stage

_SCALING, _SERVING = "autoscaling.knative.dev", "serving.knative.dev"
#: On Services that are reachable inside the cluster only, as all of ours are.
VISIBILITY = "networking.knative.dev/visibility"
_METRICS = {Measure.CONCURRENCY: "concurrency", Measure.THROUGHPUT: "rps"}
#: Fields that Knative sets itself, or has other names for.
_LEFT_OUT = ("restartPolicy", "terminationGracePeriodSeconds")
_SECOND = 1000
#: Features of Knative without which it refuses our pods: scheduler name, priority class, the node's name.
FEATURES = tuple(f"kubernetes.podspec-{name}" for name in ("schedulername", "priorityclassname", "fieldref"))


def is_knative(podsets: Sequence[PodSet]) -> bool:
    """Whether Knative can run them. It has no latency metric, and only our own proxy wakes what scaled to 0."""
    return bool(podsets) and all(
        podset.serving_port
        and podset.scaling is not None
        and podset.scaling.min_pods
        and podset.scaling.measure in _METRICS
        for podset in podsets
    )


def render_service(context: RenderContext, shapes: Sequence[PodTemplate]) -> Manifest:
    """One Service with the template of the newest revision. The previous revision serves until that is ready."""
    staged = {one.podset.stage: one for one in reversed(shapes)}
    shape = staged.get(Stage.STARTING) or staged.get(Stage.SERVING) or shapes[0]
    scaling = shape.podset.scaling or Scaling()
    metadata = metadata_of_runner(context, shape)
    metadata["name"] = context.name
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
        # Knative does not accept 1, which is its default.
        **({f"{_SCALING}/activation-scale": str(scaling.activation)} if scaling.activation > 1 else {}),
        f"{_SCALING}/metric": _METRICS[scaling.measure],
        # The target already includes the percentage from which pods are added.
        f"{_SCALING}/target": f"{scaling.target:g}",
        f"{_SCALING}/target-utilization-percentage": "100",
        f"{_SCALING}/scale-down-delay": f"{scaling.delay // _SECOND}s",
        f"{_SERVING}/progress-deadline": f"{scaling.initialization // _SECOND}s",
    }


def _container(shape: PodTemplate) -> Manifest:
    """With its one port, which Knative probes itself."""
    podset = shape.podset
    given = shape.template["spec"]["containers"][0]
    main = {name: value for name, value in given.items() if name not in ("tty", "stdin")}
    urls = podset.container.fields.exposed_urls
    is_grpc = any(url.protocol == "grpc" for url in urls if url.container == podset.serving_port)
    main["ports"] = [{"name": "h2c" if is_grpc else "http1", "containerPort": podset.serving_port}]
    probe = main.get("readinessProbe")
    if probe is not None:
        # It may not name another port.
        handler = "httpGet" if "httpGet" in probe else "tcpSocket"
        members = {name: value for name, value in probe[handler].items() if name != "port"}
        main["readinessProbe"] = {**probe, handler: {**members, "port": podset.serving_port}}
    return main
