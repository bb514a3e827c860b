"""Renders what an engine runs, from a workload, one of its pods and the pod's set. Pure."""

from collections.abc import Mapping

import msgspec

from fairlead.model import array
from fairlead.model.pods.container_fields import NamedValue
from fairlead.model.pods.podset import PodContainer, PodSet, PodSpec, fill
from fairlead.model.records.organization import Project, namespace_of
from fairlead.model.records.workload import Pod, Workload


def _placeholders(workload: Workload, podset: PodSet, group: int, index: int) -> dict[str, str]:
    """The values of a pod's placeholders. The run counts from 0, as pod names show it."""
    return {
        "workload": workload.name,
        "run": str(workload.run - 1),
        "revision": f"{podset.revision or 1:05d}",
        "role": podset.role,
        "group": str(group),
        "index": str(index),
        "ordinal": str(index + podset.offset),
    }


def pod_name(workload: Workload, podset: PodSet, group: int, index: int) -> str:
    return fill(podset.naming, _placeholders(workload, podset, group, index))


def identity(workload: Workload) -> dict[str, str]:
    """The variables that identify a workload to its program; suspension and preemption do not change them."""
    return {
        "RUNAI_PROJECT": workload.project_name,
        "RUNAI_JOB_NAME": workload.name,
        "RUNAI_JOB_UUID": workload.id,
        "JOB_NAME": workload.name,
        "JOB_UUID": workload.id,
        "jobName": workload.name,
        "jobUUID": workload.id,
    }


def render_pod(workload: Workload, pod: Pod, podset: PodSet, project: Project | None) -> PodSpec:
    namespace = project.namespace if project else namespace_of(workload.project_name)
    values = _placeholders(workload, podset, pod.group, pod.index) | {"namespace": namespace}
    return PodSpec(
        workload_id=workload.id,
        workload_name=workload.name,
        kind=workload.kind,
        project=workload.project_name,
        namespace=namespace,
        created_by=workload.created_by,
        pod_id=pod.id,
        pod_name=pod.name,
        attempt=pod.attempt,
        node=pod.node,
        role=pod.role,
        index=pod.index,
        container=_labelled(podset, values) if podset.labels or podset.annotations else podset.container,
        request=podset.request,
        gpu_devices=pod.gpu_devices,
        identity=identity(workload),
        variables={name: fill(template, values) for name, template in podset.variables.items()}
        | _array_variables(podset, pod),
        group=pod.group,
        addressed=podset.addressed,
        may_exec_in=podset.may_exec_in,
        machine_user=workload.machine_user,
        has_caller_environment=bool(workload.caller_environment),
        files={path: fill(template, values) for path, template in podset.files.items()},
    )


def _array_variables(podset: PodSet, pod: Pod) -> dict[str, str]:
    """The variable with the pod's place in an array of tasks, as the workload's annotation counts them."""
    if pod.array_index is None:
        return {}
    text = podset.container.fields.find_annotation(array.ANNOTATION) or ""
    return {array.VARIABLE: str(array.indices_of(text, pod.array_index + 1)[pod.array_index])}


def _labelled(podset: PodSet, values: Mapping[str, str]) -> PodContainer:
    """The container with the labels and annotations of its set before those of the spec."""
    fields = podset.container.fields
    labelled = msgspec.structs.replace(
        fields,
        labels=(*_filled(podset.labels, values), *fields.labels),
        annotations=(*_filled(podset.annotations, values), *fields.annotations),
    )
    return msgspec.structs.replace(podset.container, fields=labelled)


def _filled(templates: Mapping[str, str], values: Mapping[str, str]) -> list[NamedValue]:
    return [NamedValue(name=name, value=fill(template, values)) for name, template in templates.items()]
