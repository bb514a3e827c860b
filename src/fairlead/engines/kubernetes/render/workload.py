"""All Kubernetes objects of a workload: controllers, claims, Services, with the labels that KAI reads. Pure.

`convert` prints them, the engine applies them. Fields that no object can express are listed by their path in the spec.
"""

from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.resources import KNATIVE, LEADER_WORKER_SET, PYTORCH, Manifest, Resource
from fairlead.engines.kubernetes.render.context import RenderContext
from fairlead.engines.kubernetes.render.device_claims import render_claim_templates
from fairlead.engines.kubernetes.render.ingress import render_ingresses, render_services
from fairlead.engines.kubernetes.render.knative import is_knative, render_service
from fairlead.engines.kubernetes.render.kubeflow import operator_of, render_job
from fairlead.engines.kubernetes.render.losses import NO_OBJECT, find_losses
from fairlead.engines.kubernetes.render.pod import render_template
from fairlead.engines.kubernetes.render.pod_group import render_group, render_member, render_templates
from fairlead.engines.kubernetes.render.pod_security import RESTRICTED
from fairlead.engines.kubernetes.render.runners import (
    PodTemplate,
    find_array_refusal,
    is_group,
    render_manifest,
    render_runners,
    with_array_index,
)
from fairlead.engines.kubernetes.render.volumes import render_claims
from fairlead.formats.losses import Loss, Source
from fairlead.kinds.kind import Kind, read_stored_spec
from fairlead.model import array
from fairlead.model.pods.container_fields import given
from fairlead.model.pods.podset import PodSet
from fairlead.model.priority import PRIORITIES, is_preemptible
from fairlead.model.records.organization import namespace_of
from fairlead.model.records.revision import Stage
from fairlead.model.spec.fields import value_or

#: Fields of the request that the container's resources already express.
_COUNTED = (
    "cpuCoreRequest",
    "cpuCoreLimit",
    "cpuMemoryRequest",
    "cpuMemoryLimit",
    "gpuDevicesRequest",
    "gpuRequestType",
    "gpuPortionRequest",
    "gpuMemoryRequest",
    "migProfile",
)


class RenderedObjects(msgspec.Struct, frozen=True):
    """The objects of a workload in the order in which they are created, and what none of them expresses."""

    #: Of volumes, and templates of claims for devices.
    claims: list[Manifest]
    #: The first of them owns the services.
    runners: list[Manifest]
    #: Including the Ingress objects.
    services: list[Manifest]
    #: By paths of the pod sets' fields; `render_spec` finds them in the spec.
    losses: list[Loss]
    #: Templates of pods that the engine creates itself, as members of a pod group.
    members: list[PodTemplate] = []

    @property
    def objects(self) -> list[Manifest]:
        return [*self.claims, *self.services, *self.runners]

    def pods(self, context: RenderContext) -> list[Manifest]:
        """The members of the group in their first attempt."""
        return [
            render_member(context, shape, index, 0) for shape in self.members for index in range(shape.podset.count)
        ]


def render_objects(context: RenderContext, podsets: tuple[PodSet, ...], manifest: bytes = b"") -> RenderedObjects:
    """Every object of a workload, and what none of them expresses. A user's own manifest has one template per set."""
    claims: list[Manifest] = []
    services: list[Manifest] = []
    shapes: list[PodTemplate] = []
    losses: list[Loss] = []
    for podset in podsets:
        source = Source(given(podset.container.fields))
        claims += [*render_claims(context, source), *render_claim_templates(context, podset)]
        offered = render_services(context, podset, source)
        services += offered if _is_asked(podset, podsets) else []
        indexed = with_array_index(podset, context.launch.tasks_done)
        shapes.append(PodTemplate(podset, render_template(context, indexed, source)))
        losses += _array_losses(podset)
        for path in [path for path in source.left if path.startswith("compute.")]:
            if path.split(".")[1].split("[")[0] in (*_COUNTED, "extendedResources"):
                del source.left[path]
        losses += source.losses + [
            Loss(path=path, reason=NO_OBJECT, value=value) for path, value in source.left.items()
        ]
    if manifest:
        return RenderedObjects(_once(claims), [render_manifest(context, manifest, shapes)], [], losses)
    has_knative = is_knative(podsets) and KNATIVE.kind in context.launch.kinds
    services = _with_ports_once(services)
    if has_knative:
        services = _without_port(services, podsets[0].serving_port)
    requested = [podset for podset in podsets if _is_asked(podset, podsets)]
    services += render_ingresses(context, requested, is_held=has_knative)
    operator = operator_of(podsets)
    if operator is not None and operator.resource.kind in context.launch.kinds:
        return RenderedObjects(_once(claims), [render_job(context, shapes, operator)], services, losses)
    if has_knative:
        return RenderedObjects(_once(claims), [render_service(context, shapes)], services, losses)
    if is_group(podsets):
        return RenderedObjects(
            _once(claims), render_group(context, podsets), services, losses, render_templates(shapes)
        )
    return RenderedObjects(_once(claims), render_runners(context, shapes), services, losses)


def kinds_for(podsets: tuple[PodSet, ...], level: str = "") -> tuple[Resource, ...]:
    """Kinds beyond Kubernetes' own that would run these pods if the cluster has them."""
    operator = operator_of(podsets)
    if operator is not None:
        # PyTorch's operator adds a container to workers that this level does not allow.
        return () if (operator.resource, level) == (PYTORCH, RESTRICTED) else (operator.resource,)
    if is_knative(podsets):
        return (KNATIVE,)
    return (LEADER_WORKER_SET,) if any(podset.gang and podset.completions is None for podset in podsets) else ()


def _array_losses(podset: PodSet) -> list[Loss]:
    """The annotation of an array whose pods do not get these indices."""
    reason = find_array_refusal(podset)
    annotations = podset.container.fields.annotations
    return [
        Loss(path=f"annotations[{number}].value", reason=reason, value=each.value)
        for number, each in enumerate(annotations)
        if reason and each.name == array.ANNOTATION
    ]


def _is_asked(podset: PodSet, podsets: tuple[PodSet, ...]) -> bool:
    """Whether it gets requests: of several revisions the one that serves does, or the first that will."""
    serving = [each for each in podsets if each.stage is Stage.SERVING]
    return podset.stage is None or podset is (serving or podsets)[0]


def _with_ports_once(services: list[Manifest]) -> list[Manifest]:
    """A node has each port once: the first role that asks for a port gets it, the cluster chooses for the others."""
    taken: set[int] = set()
    changed = []
    for body in services:
        ports = []
        for port in body["spec"]["ports"]:
            number = port.get("nodePort")
            ports.append({name: value for name, value in port.items() if name != "nodePort" or number not in taken})
            taken |= {number} if number is not None else set()
        changed.append({**body, "spec": {**body["spec"], "ports": ports}})
    return changed


def _without_port(services: list[Manifest], port: int) -> list[Manifest]:
    """The Services without this port, which something else serves already."""
    changed = []
    for body in services:
        ports = [one for one in body["spec"]["ports"] if one["targetPort"] != port]
        changed += [{**body, "spec": {**body["spec"], "ports": ports}}] if ports else []
    return changed


def _once(claims: list[Manifest]) -> list[Manifest]:
    """A claim that several pod sets mount is created once."""
    return list({(claim["kind"], claim["metadata"]["name"]): claim for claim in claims}.values())


def render_spec(
    kind: Kind, name: str, project: str, spec: dict[str, object], namespace: str = ""
) -> tuple[list[Manifest], list[Loss]]:
    """The objects of a workload, also of one that was never submitted, from its spec as REST has it."""
    typed: Any = read_stored_spec(kind, msgspec.json.encode(spec))
    priority = value_or(typed.priority_class, kind.priority)
    context = RenderContext(
        name=name,
        namespace=namespace or namespace_of(project),
        project=project,
        queue=project,
        priority_class=priority,
        is_preemptible=is_preemptible(PRIORITIES[priority], value_or(typed.preemptibility, None)),
        lifetime=kind.lifetime_after_end(typed),
        pools=tuple(value_or(typed.node_pools, ())),
    )
    podsets = kind.podsets(typed)
    rendered = render_objects(context, podsets)
    return rendered.objects + rendered.pods(context), find_losses(kind, spec, typed, podsets, rendered.losses)
