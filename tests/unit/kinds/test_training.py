from typing import Any

import msgspec
import pytest

from fairlead.kinds import KINDS
from fairlead.kinds.kind import Outcome, SetState, read_stored_spec
from fairlead.kinds.runs import outcome_of_one as outcome
from fairlead.kinds.training import TRAINING
from fairlead.model.pods.container_fields import given
from fairlead.model.pods.podset import PodSet, Request, RestartPolicy
from fairlead.model.records.phase import Phase
from fairlead.model.spec.fields import build

MIB = 2**20


def podset(**members: Any) -> PodSet:
    [made] = TRAINING.podsets(build(TRAINING.spec, {"image": "x", **members}))
    return made


@pytest.mark.parametrize(
    ("compute", "want"),
    [
        pytest.param(None, Request(), id="nothing asked"),
        pytest.param({}, Request(), id="empty"),
        pytest.param({"cpuCoreRequest": 0.5, "cpuMemoryRequest": "1G"},
                     Request(cpu_milli=500, memory_bytes=10**9), id="CPU and memory"),
        pytest.param({"cpuCoreLimit": 2, "cpuMemoryLimit": "1G"},
                     Request(cpu_milli=200, memory_bytes=10**8), id="only limits: a tenth"),
        pytest.param({"cpuCoreRequest": 1, "cpuCoreLimit": 2}, Request(cpu_milli=1000), id="request beside limit"),
        pytest.param({"gpuDevicesRequest": 2},
                     Request(gpu_devices=2, cpu_milli=200, memory_bytes=200 * MIB), id="only GPUs"),
        pytest.param({"gpuDevicesRequest": 1, "cpuCoreLimit": 0.05, "cpuMemoryRequest": "1Gi"},
                     Request(gpu_devices=1, cpu_milli=50, memory_bytes=2**30), id="GPU default stays below the limit"),
        pytest.param({"gpuRequestType": "portion", "gpuPortionRequest": 0.5},
                     Request(gpu_devices=1, gpu_portion=500, cpu_milli=100, memory_bytes=100 * MIB), id="portion"),
        pytest.param({"gpuDevicesRequest": 3, "gpuRequestType": "portion", "gpuPortionRequest": 0.25},
                     Request(gpu_devices=3, gpu_portion=250, cpu_milli=300, memory_bytes=300 * MIB),
                     id="portion of several"),
        pytest.param({"gpuRequestType": "portion", "gpuPortionRequest": 1},
                     Request(gpu_devices=1, cpu_milli=100, memory_bytes=100 * MIB), id="portion 1 is whole"),
        pytest.param({"gpuRequestType": "portion", "gpuPortionRequest": 0}, Request(), id="portion 0 is none"),
        pytest.param({"gpuRequestType": "memory", "gpuMemoryRequest": "2Gi"},
                     Request(gpu_devices=1, gpu_memory_bytes=2**31, cpu_milli=100, memory_bytes=100 * MIB),
                     id="memory"),
        pytest.param({"gpuDevicesRequest": 0}, Request(), id="no devices"),
        pytest.param({"extendedResources": [{"resource": "a/b", "quantity": "1k"}, {"resource": "c/d"}, None,
                                            {"resource": "e/f", "quantity": "1", "exclude": True}]},
                     Request(extended={"a/b": 1000, "c/d": 1}), id="extended"),
        pytest.param({"migProfile": "1g.5gb", "gpuRequestType": "portion", "gpuPortionRequest": 0.5},
                     Request(extended={"nvidia.com/mig-1g.5gb": 1}), id="MIG wins"),
    ],
)  # fmt: skip
def test_request(compute: dict[str, Any] | None, want: Request) -> None:
    assert podset(compute=compute).request == want


@pytest.mark.parametrize(
    ("members", "want"),
    [
        pytest.param({}, (1, 1, 6, RestartPolicy.NEVER, 30), id="defaults"),
        pytest.param({"completions": None, "parallelism": None, "backoffLimit": None, "restartPolicy": None,
                      "terminationGracePeriodSeconds": None}, (1, 1, 6, RestartPolicy.NEVER, 30), id="nulls"),
        pytest.param({"completions": 5, "parallelism": 2}, (2, 5, 6, RestartPolicy.NEVER, 30), id="two at a time"),
        pytest.param({"backoffLimit": 0, "terminationGracePeriodSeconds": 0},
                     (1, 1, 0, RestartPolicy.NEVER, 0), id="zeros are given values"),
        pytest.param({"restartPolicy": "Always"}, (1, 1, 6, RestartPolicy.ALWAYS, 30), id="always"),
        pytest.param({"restartPolicy": "OnFailure"}, (1, 1, 6, RestartPolicy.ON_FAILURE, 30), id="on failure"),
    ],
)  # fmt: skip
def test_running(members: dict[str, Any], want: tuple[Any, ...]) -> None:
    got = podset(**members)
    assert (got.count, got.completions, got.backoff_limit, got.restart, got.container.termination_grace_seconds) == want


def test_excluded_and_null_items_are_gone_and_defaults_filled_in() -> None:
    container = podset(
        labels=[{"name": "a", "value": "b"}, None, {"name": "c", "exclude": True}],
        storage={"nfs": [{"path": "/e", "server": "s", "mountPath": "/m"}]},
        probes={"readiness": {"handler": {"httpGet": {"port": 80}}}},
    ).container
    fields: dict[str, Any] = dict(given(container.fields))
    assert fields["labels"] == [{"name": "a", "value": "b"}]
    assert fields["storage"]["nfs"] == [{"path": "/e", "server": "s", "mountPath": "/m", "readOnly": True}]
    assert fields["probes"]["readiness"] == {
        "initialDelaySeconds": 0,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
        "handler": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}},
    }


@pytest.mark.parametrize(
    ("url", "want"),
    [
        pytest.param({}, {"authorizationType": "authenticatedUsers"}, id="nothing: everybody signed in"),
        pytest.param({"authorizedGroups": ["g"]},
                     {"authorizationType": "authorizedGroups", "authorizedGroups": ["g"]}, id="groups"),
        pytest.param({"authorizedUsers": ["u"], "authorizedGroups": ["g"]},
                     {"authorizationType": "authorizedUsers", "authorizedUsers": ["u"]}, id="both: users"),
        pytest.param({"authorizationType": "authenticatedUsers", "authorizedUsers": ["u"]},
                     {"authorizationType": "authenticatedUsers"}, id="the type wins over lists"),
    ],
)  # fmt: skip
def test_who_may_open_a_url(url: dict[str, Any], want: dict[str, Any]) -> None:
    fields = given(podset(exposedUrls=[{"container": 80, **url}]).container.fields)
    assert fields["exposedUrls"] == [{"container": 80, **want}]


def state(completions: int = 1, backoff_limit: int = 6, **counts: Any) -> SetState:
    made = podset(completions=completions, parallelism=completions, backoffLimit=backoff_limit)
    return SetState(role=made.role, podset=made, **counts)


@pytest.mark.parametrize(
    ("given", "want_phase", "want_words"),
    [
        pytest.param(state(), None, (), id="nothing placed"),
        pytest.param(state(starting=1), Phase.INITIALIZING, ("1 pod starting",), id="starting"),
        pytest.param(state(starting=1, failed=2, last_failure="git: no such repository"), Phase.INITIALIZING,
                     ("1 pod starting after 2 pods failed: git: no such repository",), id="starting again"),
        pytest.param(state(running=1, ready=1), Phase.RUNNING, ("1 pod running",), id="running"),
        pytest.param(state(4, running=1, ready=1, starting=1, succeeded=2, failed=1), Phase.RUNNING,
                     ("2 of 4 succeeded", "1 failed"), id="partly running counts as running"),
        pytest.param(state(running=1), Phase.INITIALIZING, ("readiness",), id="not yet ready"),
        pytest.param(state(2, running=2, ready=1, lapsed=1), Phase.DEGRADED, ("readiness",), id="no longer ready"),
        pytest.param(state(succeeded=1), Phase.COMPLETED, ("1 pod succeeded",), id="completed"),
        pytest.param(state(2, succeeded=1), None, (), id="half done and waiting"),
        pytest.param(state(backoff_limit=1, failed=1), None, (), id="one failure is allowed"),
        pytest.param(state(backoff_limit=0, failed=1, last_failure="storage.git[0]: no such branch"), Phase.FAILED,
                     ("storage.git[0]: no such branch. 1 pod failed, more than the backoff limit of 0",),
                     id="failed to fetch"),
        pytest.param(state(backoff_limit=1, failed=2, last_failure="ended with exit code 3"), Phase.FAILED,
                     ("Ended with exit code 3. 2 pods failed, more than the backoff limit of 1",), id="too many"),
        pytest.param(state(backoff_limit=0, failed=1), Phase.FAILED, (), id="no failure allowed"),
    ],
)  # fmt: skip
def test_outcome(given: SetState, want_phase: Phase | None, want_words: tuple[str, ...]) -> None:
    got = outcome([given])
    assert (got.phase if isinstance(got, Outcome) else None) == want_phase
    for words in want_words:
        assert got is not None
        assert words in got.message


@pytest.mark.parametrize(("seconds", "want"), [(None, 2_592_000), (0, 0), (15, 15)])
def test_lifetime_after_end(seconds: int | None, want: int) -> None:
    spec = build(TRAINING.spec, {"autoDeletionTimeAfterCompletionSeconds": seconds})
    assert TRAINING.lifetime_after_end(spec) == want


def test_stored_spec_outside_the_bounds_is_read() -> None:
    raw = b'{"image":"x","environmentVariables":[{"name":"A","secret":{"name":"a_b","key":"k"}}]}'
    spec = msgspec.to_builtins(read_stored_spec(TRAINING, raw))
    assert spec["environmentVariables"][0]["secret"]["name"] == "a_b"


def test_kinds_have_their_own_names() -> None:
    for key, kind in KINDS.items():
        assert kind.key == key
    assert len({kind.rest for kind in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize(
    ("members", "want"),
    [
        pytest.param({}, None, id="any number"),
        pytest.param({"preemptionLimit": 3}, 3, id="so many"),
        pytest.param({"terminateAfterPreemption": True, "preemptionLimit": 3}, 0, id="none"),
    ],
)
def test_max_preemptions(members: dict[str, Any], want: int | None) -> None:
    assert TRAINING.max_preemptions(build(TRAINING.spec, {"image": "x", **members})) == want
