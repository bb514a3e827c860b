"""Whole GPUs as claims of dynamic resource allocation (DRA), for nodes whose driver offers no extended resource. Pure.

A workload asks for it by an annotation with the name of a DeviceClass. Its pods then name a ResourceClaimTemplate of
the workload, from which Kubernetes makes a claim for each pod, and KAI chooses devices. KAI counts claims as GPUs if
the name of their class contains `gpu`.
"""

import zlib

from fairlead.engines.kubernetes.client.resources import RESOURCE_CLAIM_TEMPLATE, Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of
from fairlead.model.pods.podset import PodSet

#: On a workload: the class of devices from which its whole GPUs are claimed.
CLASS_ANNOTATION = "fairlead/gpu-device-class"
#: The claim in a pod, and the request in a claim.
_GPUS = "gpus"
_LONGEST_NAME = 200


def find_device_class(podset: PodSet) -> str:
    """The class from which a pod claims its GPUs; empty if it asks for them in another way, or for none."""
    request = podset.request
    if not request.gpu_devices or request.gpu_memory_bytes or request.gpu_portion < 1000:
        return ""
    pairs = {one.name: one.value for one in podset.container.fields.annotations}
    return pairs.get(CLASS_ANNOTATION) or ""


def render_claim_templates(context: RenderContext, podset: PodSet) -> list[Manifest]:
    device_class = find_device_class(podset)
    if not device_class:
        return []
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": podset.request.gpu_devices}
    return [
        {
            "apiVersion": RESOURCE_CLAIM_TEMPLATE.api,
            "kind": RESOURCE_CLAIM_TEMPLATE.kind,
            "metadata": metadata_of(context, _template_name(context, podset)),
            "spec": {"spec": {"devices": {"requests": [{"name": _GPUS, "exactly": exactly}]}}},
        }
    ]


def render_pod_claims(context: RenderContext, podset: PodSet) -> Manifest:
    """The members of a pod's spec."""
    if not find_device_class(podset):
        return {}
    return {"resourceClaims": [{"name": _GPUS, "resourceClaimTemplateName": _template_name(context, podset)}]}


def render_container_claims(podset: PodSet) -> Manifest:
    """The members of a container's resources."""
    return {"claims": [{"name": _GPUS}]} if find_device_class(podset) else {}


def _template_name(context: RenderContext, podset: PodSet) -> str:
    """Templates cannot be changed: another class or number of devices is another template."""
    requested = f"{find_device_class(podset)} {podset.request.gpu_devices}"
    # A checksum is enough among the few templates of one workload, and `hashlib` would add 5 ms to `fairlead convert`.
    return f"{context.name[:_LONGEST_NAME]}-gpus-{zlib.crc32(requested.encode()):08x}"
