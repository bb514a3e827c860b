"""Whose an event about pods that could not be made is, and how long it holds."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import DEPLOYMENT, JOB, MPI, PYTORCH
from fairlead.engines.kubernetes.observe.events import controllers_named_in, reasons_for, templates_of
from fairlead.engines.kubernetes.observe.report import render_report
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload

LABELS = {"fairlead/workload-id": "w", "fairlead/run": "1", "fairlead/role": "main"}
QUOTA = 'Error creating: pods "w-x" is forbidden: exceeded quota: q, requested: pods=1'


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def event(
    second: int = 10, *, kind: str = "Job", name: str = "w", uid: str = "u", message: str = QUOTA
) -> objects.Event:
    told = {"kind": kind, "namespace": "n", "name": name, "uid": uid}
    metadata = {"name": f"{name}.{second}", "namespace": "n"}
    return msgspec.convert(
        {"metadata": metadata, "involvedObject": told, "message": message, "lastTimestamp": at(second)}, objects.Event
    )


def runner(**status: Any) -> objects.Runner:
    metadata = {"name": "w", "namespace": "n", "uid": "u", "labels": LABELS, "creationTimestamp": at(5)}
    return msgspec.convert({"metadata": metadata, "status": status}, objects.Runner)


def pod(second: int) -> objects.Pod:
    metadata = {"name": "p", "uid": "u-p", "labels": LABELS, "creationTimestamp": at(second)}
    return msgspec.convert({"metadata": metadata, "status": {"phase": "Pending"}}, objects.Pod)


def waits(*events: objects.Event, kind: str = "Job", pods: tuple[objects.Pod, ...] = (), **status: Any) -> list[str]:
    held = ObservedWorkload(runners=(runner(**status),), pods=pods, kinds=frozenset({kind}), events=events)
    found = render_report("w", held).waits
    assert {(wait.code, wait.can_create_pods) for wait in found} <= {("FailedCreate", False)}
    return [wait.message for wait in found]


LWS, SET = "LeaderWorkerSet", "StatefulSet"


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(event(), [("n", "Job", "w")], id="the Job itself"),
        pytest.param(event(kind=SET), [("n", SET, "w"), ("n", LWS, "w")], id="leaders"),
        pytest.param(
            event(kind=SET, name="w-1"), [("n", SET, "w-1"), ("n", LWS, "w-1"), ("n", LWS, "w")], id="workers"
        ),
        pytest.param(event(name="w-launcher"), [("n", "Job", "w-launcher"), ("n", "MPIJob", "w")], id="launcher"),
        pytest.param(event(kind="PyTorchJob"), [("n", "PyTorchJob", "w")], id="job of an operator"),
    ],
)
def test_whose_an_event_is(given: objects.Event, want: list[tuple[str, str, str]]) -> None:
    assert controllers_named_in(given) == want


@pytest.mark.parametrize(
    ("found", "want"),
    [
        pytest.param(waits(event()), [QUOTA], id="no pod yet"),
        pytest.param(waits(event(), pods=(pod(9),)), [QUOTA], id="after the last pod"),
        pytest.param(waits(event(), pods=(pod(9), pod(11))), [], id="a pod was made since"),
        pytest.param(waits(event(), pods=(pod(10),)), [], id="within the second, the controller will say it again"),
        pytest.param(waits(event(uid="another")), [], id="about an earlier Job of that name"),
        pytest.param(waits(event(7), event(8, message="later")), ["later"], id="what was said last"),
        pytest.param(waits(event(message=f"(combined from similar events): {QUOTA}")), [QUOTA], id="said often"),
        pytest.param(waits(event(kind=SET, uid="s"), kind=LWS), [QUOTA], id="of what was made for it"),
        pytest.param(waits(event(4, kind=SET, uid="s"), kind=LWS), [], id="of what was made for an earlier one"),
        pytest.param(waits(event(), conditions=[{"type": "Complete", "status": "True"}]), [], id="ended"),
        pytest.param(
            waits(kind="Deployment", conditions=[{"type": "ReplicaFailure", "status": "True", "message": "no room"}]),
            ["no room"],
            id="a Deployment says it itself",
        ),
    ],
)
def test_which_of_them_hold(found: list[str], want: list[str]) -> None:
    assert found == want


def test_an_operator_that_complains_has_taken_notice() -> None:
    metadata = msgspec.structs.replace(runner().metadata, labels=LABELS | {"fairlead/attempt": "0"})
    job = objects.Runner(metadata=metadata)
    held = ObservedWorkload(runners=(job,), kinds=frozenset({"PyTorchJob"}), events=(event(kind="PyTorchJob"),))
    report = render_report("w", held)
    assert ([wait.message for wait in report.waits], report.retrying_because) == ([QUOTA], "")
    assert render_report("w", msgspec.structs.replace(held, events=())).retrying_because


def test_each_controller_has_its_own_word() -> None:
    assert reasons_for((JOB, DEPLOYMENT)) == {"FailedCreate"}
    assert reasons_for((PYTORCH,)) == {"FailedCreate", "FailedCreatePod"}
    assert reasons_for((MPI,)) == {"FailedCreate", "MPIJobFailed"}


def test_pods_are_found_wherever_they_are() -> None:
    one, two = ({"metadata": {"name": name}, "spec": {"containers": []}} for name in "ab")
    group = {"spec": {"leaderWorkerTemplate": {"size": 2, "leaderTemplate": one, "workerTemplate": two}}}
    job = {"spec": {"pytorchReplicaSpecs": {"Master": {"template": one}, "Worker": {"replicas": 2, "template": two}}}}
    assert list(templates_of(group)) == list(templates_of(job)) == [one, two]
