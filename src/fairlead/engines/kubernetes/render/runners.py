"""The controllers of pod sets: Jobs, Deployments, LeaderWorkerSets, or a pod group of our own. Pure.

The choice depends on the pod sets alone (docs/designs/0006-kubernetes-engine.md), not on the workload's kind.

An array of tasks is an Indexed Job. Such a Job counts its pods from 0; if the indices of its tasks are others, a shell
computes the index of a pod before it starts the command.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.resources import LEADER_WORKER_SET, Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of, selector_of
from fairlead.engines.kubernetes.render.labels import (
    COMPLETION_INDEX,
    FAILURES,
    LEVEL,
    NODE_SCALING,
    ROLE_LABEL,
    SUCCEEDED,
    TASKS_DONE,
    TASKS_LEFT,
    drop_deciding,
    role_label,
)
from fairlead.engines.kubernetes.render.pod_security import RESTRICTED
from fairlead.formats.foreign.pod_templates import find_templates
from fairlead.model import array
from fairlead.model.pods.podset import EnvironmentVariable, PodContainer, PodSet, RestartPolicy, RestartScope

LONGEST_LIFETIME = 2**31 - 1
#: Annotations of the user that the scheduler reads on the owner of the pods.
_OF_OWNERS = ("kai.scheduler/",)
#: Where Kubernetes tells a pod its place in its Indexed Job, and the variable that has it in pods that need a shell.
_PLACE_FIELD, _PLACE = f"metadata.annotations['{COMPLETION_INDEX}']", "JOB_COMPLETION_INDEX"
#: Ranges of indices that one Job computes at most: a word of a command has at most 128 KiB.
_MAX_RANGES = 1000
#: A reference to the index in a word of the command, or an escaped dollar before a bracket.
_REFERENCE = re.compile(rf"(\$\$(?=[({{]))|\$\({array.VARIABLE}\)|\$\{{{array.VARIABLE}\}}")


class PodTemplate(msgspec.Struct, frozen=True):
    """A pod set and its pod template."""

    podset: PodSet
    template: Manifest


def render_runners(context: RenderContext, shapes: Sequence[PodTemplate]) -> list[Manifest]:
    serving = [shape for shape in shapes if shape.podset.gang and shape.podset.completions is None]
    if serving:
        return [_leader_worker_set(context, serving)]
    return [_runner(context, shape) for shape in shapes]


def is_group(podsets: Sequence[PodSet]) -> bool:
    """Whether pods start together and run to an end, for which Kubernetes has no controller."""
    return any(podset.gang and podset.completions is not None for podset in podsets)


def _runner(context: RenderContext, shape: PodTemplate) -> Manifest:
    if shape.podset.restart is RestartPolicy.ALWAYS:
        return _deployment(context, shape)
    return _job(context, shape)


def metadata_of_runner(context: RenderContext, shape: PodTemplate) -> Manifest:
    role = {ROLE_LABEL: role_label(shape.podset.role)} if context.ownership_labels else {}
    revision = f"-{shape.podset.revision}" if shape.podset.revision else ""
    metadata = metadata_of(context, f"{context.name}{shape.podset.infix}{revision}", role)
    annotations = shape.template["metadata"].get("annotations", {})
    read = {name: value for name, value in annotations.items() if name.startswith(_OF_OWNERS)}
    if context.level == RESTRICTED:
        read[LEVEL] = context.level
    if context.launch.pool_selectors is not None:
        read[NODE_SCALING] = " ".join(context.launch.pool_selectors)
    if read:
        metadata["annotations"] = read
    return metadata


def _job(context: RenderContext, shape: PodTemplate) -> Manifest:
    podset = shape.podset
    spec: Manifest = {
        "completions": max(1, (podset.completions or 1) - context.launch.succeeded),
        "parallelism": podset.count,
        "backoffLimit": max(0, podset.backoff_limit - context.launch.failures),
        "template": shape.template,
    }
    counts = {SUCCEEDED: context.launch.succeeded, FAILURES: context.launch.failures}
    noted = {name: str(count) for name, count in counts.items() if count}
    if array_of(podset) is not None:
        tasks = tasks_of(podset, context.launch.tasks_done)
        spec |= {"completionMode": "Indexed", "completions": len(tasks)}
        noted |= _note_tasks(podset, context.launch.tasks_done, len(tasks))
    if context.lifetime is not None:
        spec["ttlSecondsAfterFinished"] = min(context.lifetime, LONGEST_LIFETIME)
    if podset.restart is RestartPolicy.NEVER:
        # Preemption is not a failure, and must not count against the backoff limit.
        disruption = {"type": "DisruptionTarget", "status": "True"}
        spec["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onPodConditions": [disruption]}]}
    metadata = metadata_of_runner(context, shape)
    if noted:
        metadata["annotations"] = {**metadata.get("annotations", {}), **noted}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


# Arrays of tasks


def array_of(podset: PodSet) -> tuple[int, ...] | None:
    """The index of each task, if the pods are an array that a Job runs."""
    text = podset.container.fields.find_annotation(array.ANNOTATION)
    if text is None or podset.completions is None or podset.gang or podset.restart is RestartPolicy.ALWAYS:
        return None
    return array.indices_of(text, podset.completions)


def find_array_refusal(podset: PodSet) -> str:
    """Why a cluster cannot run the array that is asked for; empty if it can, or none is."""
    if podset.container.fields.find_annotation(array.ANNOTATION) is None:
        return ""
    indices = array_of(podset)
    if indices is None:
        return "only the pods of a training that does not always restart have an array index"
    if podset.container.command or len(indices) == 1 or _is_counted_from_0(indices):
        return ""
    return (
        "indices that are not counted from 0 need a command, because a shell sets them before it starts the command; "
        f"write --command before --, or use 0-{len(indices) - 1}"
    )


def _is_counted_from_0(indices: Sequence[int]) -> bool:
    return tuple(indices) == tuple(range(len(indices)))


def tasks_of(podset: PodSet, done: str) -> tuple[int, ...]:
    """The positions in the array of the tasks that the next Job runs; its Nth pod runs the Nth of them.

    All that are not done, if the Job can tell its pods their indices. Otherwise some of them are left for a later Job:
    without a command, tasks run one by one once the first Job has ended too early.
    """
    indices, finished = array_of(podset) or (), array.read_positions(done)
    unfinished = tuple(position for position in range(len(indices)) if position not in finished)
    wanted = [indices[position] for position in unfinished]
    if _is_counted_from_0(wanted):
        return unfinished
    if not podset.container.command:
        return unfinished[:1] if finished else unfinished
    return unfinished[: sum(number for _, _, number in array.split_into_steps(wanted)[:_MAX_RANGES])]


def with_array_index(podset: PodSet, done: str) -> PodSet:
    """The pod set with pods that know their index, if it is an array of which these tasks are done."""
    indices = array_of(podset)
    if indices is None:
        return podset
    wanted, container = [indices[position] for position in tasks_of(podset, done)], podset.container
    if len(wanted) == 1:
        container = _with_variable(container, EnvironmentVariable(name=array.VARIABLE, value=str(wanted[0])))
    elif _is_counted_from_0(wanted) or not container.command:
        container = _with_variable(container, EnvironmentVariable(name=array.VARIABLE, pod_field=_PLACE_FIELD))
    else:
        container = _with_shell(container, wanted)
    return msgspec.structs.replace(podset, container=container)


def _with_variable(container: PodContainer, variable: EnvironmentVariable) -> PodContainer:
    """Last and alone: other variables of that name would win, or confuse."""
    others = [each for each in container.environment if each.name not in (variable.name, array.VARIABLE)]
    return msgspec.structs.replace(container, environment=(*others, variable))


def _with_shell(container: PodContainer, indices: Sequence[int]) -> PodContainer:
    """A shell computes the index from the pod's place in the Job, and becomes the command.

    Kubernetes would fill in references to the index before the shell knows it. So words are split there, and the shell
    puts them together. `$$` is how Kubernetes writes a dollar before a bracket.
    """
    branches, before = [], 0
    for first, step, number in array.split_into_steps(indices):
        branches.append(f"[ $i -lt {before + number} ]; then i=$$(({first} + {step} * (i - {before})))")
        before += number
    parts: list[str] = []
    quoted = []
    for word in (*container.command, *container.args):
        split = _REFERENCE.sub(lambda match: match[1] or "\0", word).split("\0")
        numbers = range(len(parts) + 1, len(parts) + len(split) + 1)
        quoted.append('"' + f"${array.VARIABLE}".join(f"${{{number}}}" for number in numbers) + '"')
        parts += split
    call = " ".join(quoted) if len(parts) > len(quoted) else '"$@"'
    script = f"i=${_PLACE}; if {'; elif '.join(branches)}; fi; export {array.VARIABLE}=$i; exec {call}"
    shell = msgspec.structs.replace(container, command=("/bin/sh", "-c", script, "sh"), args=tuple(parts))
    return _with_variable(shell, EnvironmentVariable(name=_PLACE, pod_field=_PLACE_FIELD))


def _note_tasks(podset: PodSet, done: str, number: int) -> dict[str, str]:
    """The annotations of a Job that runs this number of tasks after those that are done."""
    remaining = (podset.completions or 1) - len(array.read_positions(done)) - number
    return {name: value for name, value in ((TASKS_DONE, done), (TASKS_LEFT, str(remaining or ""))) if value}


def _deployment(context: RenderContext, shape: PodTemplate) -> Manifest:
    """For containers that always restart, which a Job does not allow. It replaces an evicted pod by itself."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata_of_runner(context, shape),
        "spec": {
            "replicas": shape.podset.count,
            "selector": {"matchLabels": selector_of(context, shape.podset)},
            # The new pod needs the resources of the old one.
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 1,
            "template": shape.template,
        },
    }


def _leader_worker_set(context: RenderContext, shapes: Sequence[PodTemplate]) -> Manifest:
    leader, *others = shapes
    worker = others[0] if others else leader
    starts_again = leader.podset.restart_scope is RestartScope.GROUP
    return {
        "apiVersion": LEADER_WORKER_SET.api,
        "kind": LEADER_WORKER_SET.kind,
        "metadata": metadata_of_runner(context, leader),
        "spec": {
            "replicas": leader.podset.groups,
            "startupPolicy": "LeaderReady" if worker.podset.starts_after else "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": 1 + sum(shape.podset.count for shape in others),
                "restartPolicy": "RecreateGroupOnPodRestart" if starts_again else "None",
                "leaderTemplate": _restarting(leader.template),
                "workerTemplate": _restarting(worker.template),
            },
        },
    }


def _restarting(template: Manifest) -> Manifest:
    """Its pods belong to StatefulSets, whose containers always restart; the group's own policy decides what follows."""
    return {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}


# Objects of users


def render_manifest(context: RenderContext, text: bytes, shapes: Sequence[PodTemplate]) -> Manifest:
    """A user's own object with our pod templates, so that policies, queues, pools and labels hold for its pods.

    Everything else stays as the user wrote it, except whose the object is.
    """
    given: dict[str, Any] = msgspec.json.decode(text)
    body = {name: value for name, value in given.items() if name not in ("metadata", "status")}
    templates = list(find_templates({"spec": body.get("spec")}))
    for (path, template), shape in zip(templates, shapes, strict=True):
        parent: Any = body
        for step in path[:-1]:
            parent = parent[step]
        parent[path[-1]] = {**template, **_with_container_name(shape.template, template)}
    users = given.get("metadata") or {}
    metadata = metadata_of_runner(context, shapes[0])
    for name in ("labels", "annotations"):
        merged = {**drop_deciding(users.get(name) or {}), **metadata.get(name, {})}
        if merged:
            metadata[name] = merged
    return {**body, "metadata": metadata}


def _with_container_name(rendered: Manifest, given: Manifest) -> Manifest:
    """Controllers may know the container by its name."""
    container = given["spec"]["containers"][0]
    first, *others = rendered["spec"]["containers"]
    renamed = {**first, "name": container.get("name") or first["name"]}
    return {**rendered, "spec": {**rendered["spec"], "containers": [renamed, *others]}}
