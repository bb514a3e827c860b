"""Builders of model records for tests: a name and a few keywords, everything else sensible."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from fairlead.control.decide.cluster.reports import ClusterState, apply_cluster_report
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.phases import PhaseInputs, decide
from fairlead.control.decide.pods.orders import pod_orders
from fairlead.control.decide.pods.reports import apply_pod_reports
from fairlead.control.decide.pods.restarting import Backoff
from fairlead.engines.base import PodOrder, PodReport, Review
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis
from fairlead.model.pods.container_fields import ContainerFields
from fairlead.model.pods.podset import PodContainer, PodSet, PodSpec, Request, RestartPolicy
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload

CLUSTER = "71f69d83-ba66-4822-adf5-55ce55efd210"


def workload(name: str = "train", **members: Any) -> Workload:
    given: dict[str, Any] = {
        "id": f"id-{name}",
        "version": 1,
        "kind": "training",
        "name": name,
        "requested_name": name,
        "project_id": "1",
        "project_name": "default",
        "department_id": "1",
        "department_name": "default",
        "cluster_id": CLUSTER,
        "created_by": "ada@example.com",
        "created_at": 0,
        "spec": msgspec.Raw(b'{"image":"python:3"}'),
        "desired_phase": DesiredPhase.RUNNING,
        "phase": Phase.CREATING,
    }
    return Workload(**(given | members))


def pod(name: str = "train-0-0", **members: Any) -> Pod:
    given: dict[str, Any] = {
        "id": f"pod-{name}",
        "version": 1,
        "workload_id": "id-train",
        "project_id": "1",
        "name": name,
        "role": "main",
        "index": 0,
        "run": 1,
        "node": "node-a",
        "phase": PodPhase.RUNNING,
    }
    return Pod(**(given | members))


def container_fields(rest: Mapping[str, Any]) -> ContainerFields:
    """The fields of a container, written under their REST names."""
    return msgspec.convert(rest, ContainerFields)


def podset(**members: Any) -> PodSet:
    given: dict[str, Any] = {
        "role": "main",
        "container": PodContainer(image="python:3", command=("true",), termination_grace_seconds=30),
        "request": Request(cpu_milli=100),
        "restart": RestartPolicy.NEVER,
    }
    return PodSet(**(given | members))


def array_podset(text: str, tasks: int, command: tuple[str, ...] = ("true",), **members: Any) -> PodSet:
    """An array of so many tasks with these indices, two at once."""
    fields = container_fields({"annotations": [{"name": "fairlead/array", "value": text}]})
    container = PodContainer(image="python:3", command=command, args=("x",), fields=fields)
    return podset(completions=tasks, count=2, container=container, **members)


def pod_spec(workload: Workload, pod: Pod, podset: PodSet) -> PodSpec:
    return PodSpec(
        workload_id=workload.id,
        workload_name=workload.name,
        kind=workload.kind,
        project=workload.project_name,
        namespace="runai-default",
        created_by=workload.created_by,
        pod_id=pod.id,
        pod_name=pod.name,
        attempt=pod.attempt,
        node=pod.node,
        role=pod.role,
        index=pod.index,
        container=podset.container,
        request=podset.request,
    )


def rules(**members: Any) -> PhaseInputs:
    """By which a loop decides on trainings, with an engine that has nothing to say."""
    given = {"outcome": KINDS["training"].outcome, "review": lambda podset: Review()}
    return PhaseInputs(**{**given, **members})


def decide_pods(
    entry: WorkloadEntry, reports: Iterable[PodReport], now: Millis, inputs: PhaseInputs, longest: Millis = 300_000
) -> Draft:
    """A decision on an engine of single pods."""
    return decide(entry, partial(apply_pod_reports, reports=reports, backoff=Backoff(1000, longest)), now, inputs)


def decide_cluster(entry: WorkloadEntry, state: ClusterState, now: Millis, inputs: PhaseInputs) -> Draft:
    """A decision on an engine of whole workloads."""
    return decide(entry, partial(apply_cluster_report, state=state), now, inputs)


def orders(draft: Draft) -> list[PodOrder]:
    """What an engine of single pods is told for a draft."""
    return pod_orders(draft, pod_spec)
