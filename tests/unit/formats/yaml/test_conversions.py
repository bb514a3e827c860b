"""YAML fields that are not one field of REST: what they mean together, and that they come back."""

from typing import Any

import pytest

from fairlead.formats.yaml.documents import read_manifests, read_spec
from fairlead.formats.yaml.text import render_yaml
from fairlead.formats.yaml.write import render_document
from fairlead.kinds import KINDS
from tests.unit.formats.yaml_texts import rest, workload

TRAINING = KINDS["training"]


def compute(**members: Any) -> dict[str, Any]:
    return {"compute": members}


@pytest.mark.parametrize(
    ("written", "want_rest"),
    [
        pytest.param("gpu: {value: 1}", compute(gpuDevicesRequest=1), id="one device"),
        pytest.param("gpu: {value: 8}", compute(gpuDevicesRequest=8), id="eight devices"),
        pytest.param('gpu: {value: "2.0"}', compute(gpuDevicesRequest=2), id="two, written with a point"),
        pytest.param("gpu: {value: 0}", compute(gpuDevicesRequest=0), id="none"),
        pytest.param(
            "gpu: {value: 0.5}\ngpuDevices: {value: 2}",
            compute(gpuDevicesRequest=2, gpuPortionRequest=0.5, gpuRequestType="portion"),
            id="a part of two",
        ),
        pytest.param(
            "gpu: {value: 0.5}\ngpuLimit: {value: 0.8}",
            compute(gpuPortionRequest=0.5, gpuPortionLimit=0.8, gpuRequestType="portion"),
            id="a limit as a number",
        ),
        pytest.param(
            "gpuMemory: {value: 10M}\ngpuLimit: {value: 20M}",
            compute(gpuMemoryRequest="10M", gpuMemoryLimit="20M", gpuRequestType="memory"),
            id="a limit as a quantity",
        ),
        pytest.param(
            "gpuMemory: {value: 10M}\ngpuMemoryLimit: {value: 20M}",
            compute(gpuMemoryRequest="10M", gpuMemoryLimit="20M", gpuRequestType="memory"),
            id="a memory limit",
        ),
        pytest.param(
            "runAsUser: {value: true}\nrunAsUid: {value: 5}\nrunAsGid: {value: 6}",
            {"security": {"uidGidSource": "custom", "runAsUid": 5, "runAsGid": 6}},
            id="ids of its own",
        ),
        pytest.param(
            "runAsUser: {value: false}", {"security": {"uidGidSource": "fromTheImage"}}, id="the image's user"
        ),
        pytest.param(
            "podAffinity: {value: true}\npodAffinitySchedulingRule: {value: hard}\npodAffinityTopology: {value: zone}",
            {"podAffinity": {"type": "Required", "key": "zone"}},
            id="hard affinity",
        ),
        pytest.param(
            "podAffinity: {value: true}\npodAffinitySchedulingRule: {value: Preferred}\n"
            "podAffinityTopology: {value: zone}",
            {"podAffinity": {"type": "Preferred", "key": "zone"}},
            id="affinity in the API's words",
        ),
        pytest.param("podAffinity: {value: false}", {}, id="no affinity"),
        pytest.param(
            "serviceType: {value: NodePort}\n"
            "ports: {items: {a: {value: {container: 1}}, b: {value: {container: 2, serviceType: LoadBalancer}}}}",
            {
                "ports": [
                    {"name": "a", "container": 1, "serviceType": "NodePort"},
                    {"name": "b", "container": 2, "serviceType": "LoadBalancer"},
                ]
            },
            id="service type of ports that name none",
        ),
        pytest.param(
            "mountPropagation: {value: true}\nvolumes: {items: {a: {value: {path: /a, mountPath: /b}}}}",
            {
                "storage": {
                    "hostPath": [{"name": "a", "path": "/a", "mountPath": "/b", "mountPropagation": "HostToContainer"}]
                }
            },
            id="propagation of volumes that name none",
        ),
        pytest.param(
            "volumes: {items: {a: {value: {path: /a, mountPath: /b, mountPropagation: false}}}}",
            {"storage": {"hostPath": [{"name": "a", "path": "/a", "mountPath": "/b", "mountPropagation": "None"}]}},
            id="propagation as a boolean",
        ),
    ],
)
def test_there_and_back(written: str, want_rest: dict[str, Any]) -> None:
    got = rest(written)
    assert got == want_rest
    document, losses = render_document(TRAINING, got, "x")
    assert [loss.path for loss in losses] == ["autoDeletionTimeAfterCompletionSeconds"]
    again = read_spec(read_manifests(render_yaml(document))[0][0]).plain
    del again["autoDeletionTimeAfterCompletionSeconds"]
    assert again == want_rest


def test_ids_without_run_as_user_have_no_effect() -> None:
    found = workload("runAsUid: {value: 5}")
    assert "security" not in found.plain
    assert [path for path, _ in found.remarks] == ["spec.runAsUid"]


@pytest.mark.parametrize(
    ("spec", "want_lost"),
    [
        pytest.param(
            {"compute": {"gpuPortionRequest": 1, "gpuRequestType": "portion"}}, "compute.gpuPortionRequest", id="1"
        ),
        pytest.param({"security": {"runAsUid": 5}}, "security.runAsUid", id="an id without source"),
        pytest.param(
            {"environmentVariables": [{"name": "A", "value": "SECRET:x"}]}, "environmentVariables[0].value", id="e"
        ),
        pytest.param({"category": "Train"}, "category", id="no such field"),
        pytest.param({"backoffLimit": None}, "backoffLimit", id="null"),
        pytest.param({"labels": [{"name": "a", "value": "b", "exclude": True}]}, "labels[0].exclude", id="excluded"),
        pytest.param(
            {"exposedUrls": [{"container": 1, "authorizationType": "authorizedUsers"}]},
            "exposedUrls[0].container",
            id="a URL that nothing would guard",
        ),
    ],
)
def test_what_cannot_be_written_is_listed(spec: dict[str, Any], want_lost: str) -> None:
    _, losses = render_document(TRAINING, spec, "x")
    assert want_lost in [loss.path for loss in losses]
