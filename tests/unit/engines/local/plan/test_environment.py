"""The environment and the words of a pod's command."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from fairlead.engines.local.plan.environment import (
    expand,
    pod_field,
    refuse_references,
    render_base,
    render_environment,
)
from fairlead.engines.local.settings import Identity
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import EnvironmentVariable, PodContainer, PodSpec, Request
from tests.builders import container_fields

USER = Identity(uid=1000, gid=1000, login="ada", home="/home/ada", shell="/bin/bash")
GIB = 1024**3


def pod(**members: Any) -> PodSpec:
    container = {name: members.pop(name) for name in ("environment", "fields", "tty") if name in members}
    given: dict[str, Any] = {
        "workload_id": "w-1",
        "workload_name": "train",
        "kind": "training",
        "project": "research",
        "namespace": "runai-research",
        "created_by": "ada@example.com",
        "pod_id": "p-1",
        "pod_name": "train-0-0",
        "attempt": 2,
        "node": "node-a",
        "role": "worker",
        "index": 0,
        "container": PodContainer(image="x", fields=container_fields(container.pop("fields", {})), **container),
        "request": Request(),
    }
    return PodSpec(**(given | members))


def render(spec: PodSpec, device_memory: int = 0) -> dict[str, str]:
    return render_environment(
        spec, render_base(USER, spec.container.tty, {}), "10.0.0.1", device_memory, asyncio.run(refuse_references(spec))
    )


def literal(name: str, value: str) -> EnvironmentVariable:
    return EnvironmentVariable(name=name, value=value)


def test_the_base_is_clean_and_the_same_for_everybody() -> None:
    want = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "NODE_NAME"}
    want |= {"RUNAI_NUM_OF_GPUS", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "FAIRLEAD_ATTEMPT"}
    assert set(render(pod())) == want


def test_who_wins_base_then_user_then_identity() -> None:
    given = (literal("HOME", "/mine"), literal("RUNAI_PROJECT", "faked"), literal("A", "1"), literal("A", "2"))
    variables = render(pod(environment=given, identity={"RUNAI_PROJECT": "research"}))
    assert (variables["HOME"], variables["RUNAI_PROJECT"], variables["A"]) == ("/mine", "research", "2")


def test_a_terminal_has_a_type() -> None:
    assert "TERM" in render(pod(tty=True))
    assert "TERM" not in render(pod())


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("$(A)/x", "1/x"),
        ("$(LATER)", "$(LATER)"),
        ("$(HOME)", "$(HOME)"),
        ("$$(A)", "$(A)"),
        ("${A} $${A}", "${A} $${A}"),
        ("pa$$word", "pa$$word"),
        ("$$$(A)", "$$1"),
        ("$(RANK)", "3"),
    ],
    ids=["before it", "after it", "the base", "escaped", "braces", "two dollars", "dollars before it", "of the set"],
)
def test_values_refer_to_variables_before_them(value: str, want: str) -> None:
    """As in Kubernetes, where neither the image's variables nor later ones are known."""
    given = (literal("A", "1"), literal("B", value), literal("LATER", "2"))
    assert render(pod(environment=given, variables={"RANK": "3"}))["B"] == want


def test_a_value_from_elsewhere_is_not_expanded() -> None:
    given = (literal("A", "1"), EnvironmentVariable(name="B", secret=("s", "k")))
    variables = render_environment(pod(environment=given), {}, "", 0, lambda variable: "$(A)$$")
    assert variables["B"] == "$(A)$$"


@dataclass
class Devices:
    request: Request
    devices: tuple[int, ...]
    want: dict[str, str | None]
    device_memory: int = 0
    fields: dict[str, Any] = field(default_factory=dict)


DEVICES = {
    "none": Devices(
        Request(), (), {"RUNAI_NUM_OF_GPUS": "0", "NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": ""}
    ),
    "two whole": Devices(
        Request(gpu_devices=2),
        (1, 3),
        {
            "RUNAI_NUM_OF_GPUS": "2",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": "1,3",
            "GPU_PORTION": "1",
        },
    ),
    "half": Devices(Request(gpu_devices=1, gpu_portion=500), (0,), {"RUNAI_NUM_OF_GPUS": "0.5", "GPU_PORTION": "0.5"}),
    "half of two": Devices(
        Request(gpu_devices=2, gpu_portion=500), (0, 1), {"RUNAI_NUM_OF_GPUS": "1", "GPU_PORTION": "0.5"}
    ),
    "by memory": Devices(
        Request(gpu_devices=1, gpu_memory_bytes=20 * GIB),
        (0,),
        {"RUNAI_NUM_OF_GPUS": "0.25", "GPU_PORTION": "0.25", "RUNAI_GPU_MEMORY_LIMIT": None},
        device_memory=80 * GIB,
    ),
    "very little memory": Devices(
        Request(gpu_devices=1, gpu_memory_bytes=1),
        (0,),
        {"RUNAI_NUM_OF_GPUS": "0.001", "GPU_PORTION": "0.001"},
        device_memory=80 * GIB,
    ),
    "memory limit": Devices(
        Request(gpu_devices=1),
        (0,),
        {"RUNAI_GPU_MEMORY_LIMIT": "20Gi"},
        fields={"compute": {"gpuMemoryLimit": "20Gi"}},
    ),
}


@pytest.mark.parametrize("case", DEVICES.values(), ids=DEVICES.keys())
def test_what_it_was_given_of_the_gpus(case: Devices) -> None:
    spec = pod(request=case.request, gpu_devices=case.devices, fields=case.fields)
    variables = render(spec, case.device_memory)
    assert {name: variables.get(name) for name in case.want} == case.want


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("metadata.name", "train-0-0"),
        ("metadata.namespace", "runai-research"),
        ("metadata.uid", "p-1"),
        ("spec.nodeName", "node-a"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "10.0.0.1"),
        ("status.podIPs", "10.0.0.1"),
        ("status.hostIP", "10.0.0.1"),
        ("status.hostIPs", "10.0.0.1"),
        ("metadata.labels['team']", "vision"),
        ("metadata.annotations['note']", "hello"),
        ("metadata.labels['absent']", ""),
    ],
)
def test_downward_fields(path: str, want: str) -> None:
    fields = {"labels": [{"name": "team", "value": "vision"}], "annotations": [{"name": "note", "value": "hello"}]}
    assert pod_field(pod(fields=fields), path, "10.0.0.1") == want


def test_a_downward_field_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(Refused, match=r"spec\.hostname.*metadata\.name"):
        pod_field(pod(), "spec.hostname", "")


@pytest.mark.parametrize("source", ["secret", "config_map", "user_credential"])
def test_references_are_refused_with_their_name(source: str) -> None:
    members: dict[str, Any] = {source: ("my-object", "key")}
    variable = EnvironmentVariable(name="TOKEN", **members)
    with pytest.raises(Refused, match=r"TOKEN.*my-object"):
        render(pod(environment=(variable,)))


def test_a_resolver_gives_the_values_of_references() -> None:
    spec = pod(environment=(EnvironmentVariable(name="TOKEN", secret=("a", "b")),))
    variables = render_environment(
        spec, render_base(USER, False, {}), "", 0, lambda variable: "/".join(variable.secret or ())
    )
    assert variables["TOKEN"] == "a/b"


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("$(A)", "1"),
        ("${A}", "1"),
        ("x$(A)y${B}z", "x1y2z"),
        ("$$(A)", "$(A)"),
        ("$${A}", "${A}"),
        ("$$$(date)", "$$$(date)"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("${UNKNOWN}", "${UNKNOWN}"),
        ("$A", "$A"),
        ("echo $$", "echo $$"),
        ("${A:-default}", "${A:-default}"),
        ("$(date)", "$(date)"),
        ("$(", "$("),
    ],
)
def test_references_in_the_command(word: str, want: str) -> None:
    assert expand((word,), {"A": "1", "B": "2"}) == [want]


def test_values_are_not_expanded_again() -> None:
    assert expand(("$(A)",), {"A": "$(B)", "B": "no"}) == ["$(B)"]


def test_the_mark_names_the_attempt() -> None:
    spec = msgspec.structs.replace(pod(), attempt=7)
    assert render(spec)["FAIRLEAD_ATTEMPT"] == "p-1.7"
