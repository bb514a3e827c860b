"""From a workload, one of its pods and its pod set to what an engine is told to run. Pure."""

from fairlead.model.org import Project
from fairlead.model.podset import PodSet, PodSpec
from fairlead.model.workload import Pod, Workload


def pod_name(workload: Workload, podset: PodSet, index: int) -> str:
    """Unlike in every earlier run, so that a resumed workload's pods cannot be mistaken for its old ones."""
    return f"{workload.name}{podset.infix}-{workload.run - 1}-{index}"


def identity(workload: Workload) -> dict[str, str]:
    """The variables by which a program learns who it is; they stay the same over suspend and preemption."""
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
    return PodSpec(
        workload_id=workload.id,
        workload_name=workload.name,
        kind=workload.kind,
        project=workload.project_name,
        namespace=project.namespace if project else f"runai-{workload.project_name}",
        created_by=workload.created_by,
        pod_id=pod.id,
        pod_name=pod.name,
        attempt=pod.attempt,
        node=pod.node,
        role=pod.role,
        index=pod.index,
        container=podset.container,
        request=podset.request,
        gpu_devices=pod.gpu_devices,
        identity=identity(workload),
    )
