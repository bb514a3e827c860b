"""Stands in for the gateway through which Knative's requests come: says of every one that is wanted that it is there.

Nothing passes through it. Those that Knative has are Envoy with a controller each, and Envoy is no Go program. Run in
the cluster by `add knative`; state is only what the API server has, so that it can be killed at any time.
"""

import queue
import sys
import threading
from pathlib import Path

from deploy.cluster.api import MERGE, Api, ApiError, Object
from deploy.cluster.pod_life import timestamp
from deploy.cluster.stand_in import Event, follow

INGRESSES = "/apis/networking.internal.knative.dev/v1alpha1"
_CONDITIONS = ("LoadBalancerReady", "NetworkConfigured", "Ready")


def render_status(ingress: Object) -> Object:
    """In place as it is wanted now, and led to by nothing but names inside the cluster."""
    now = timestamp()
    balancer = {"ingress": [{"meshOnly": True}]}
    return {
        "observedGeneration": ingress["metadata"]["generation"],
        "conditions": [{"type": name, "status": "True", "lastTransitionTime": now} for name in _CONDITIONS],
        "publicLoadBalancer": balancer,
        "privateLoadBalancer": balancer,
    }


def note(api: Api, kind: str, ingress: Object) -> None:
    metadata = ingress["metadata"]
    if kind == "DELETED" or ingress.get("status", {}).get("observedGeneration") == metadata["generation"]:
        return
    path = f"{INGRESSES}/namespaces/{metadata['namespace']}/ingresses/{metadata['name']}/status"
    try:
        api.call("PATCH", path, {"status": render_status(ingress)}, MERGE)
    except ApiError as error:
        # Gone or changed meanwhile: its next change comes too.
        if error.status not in (404, 409):
            raise


def main() -> int:
    kubeconfig = Path(sys.argv[1]) / "kubeconfig"
    events: queue.Queue[Event] = queue.Queue()
    arguments = (kubeconfig, "ingresses", f"{INGRESSES}/ingresses", events)
    threading.Thread(target=follow, args=arguments, daemon=True).start()
    api = Api(kubeconfig)
    while True:
        _, kind, ingress = events.get()
        note(api, kind, ingress)


if __name__ == "__main__":
    sys.exit(main())
