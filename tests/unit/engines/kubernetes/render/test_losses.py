"""Every declared member of every kind's spec: the objects say it, or it is listed by its own path."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect

from fairlead.engines.kubernetes.render.workload import render_spec
from fairlead.formats.losses import leaves, rebuild
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import Field, fields_of

#: What is around a member, so that it can have a meaning: one base for each shape that a workload's objects have.
BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "training": ("training", {"image": "i", "completions": 5, "parallelism": 5}),
    "training that restarts": ("training", {"image": "i", "completions": 5, "restartPolicy": "Always"}),
    "workspace": ("workspace", {"image": "i"}),
    "workspace that restarts": ("workspace", {"image": "i", "restartPolicy": "Always"}),
    "inference": ("inference-service", {"image": "i", "servingPort": {"container": 80}}),
    "groups": (
        "distributed-inference",
        {"leader": {"image": "i"}, "worker": {"image": "i"}, "workers": 1, "servingPort": {"port": 80}},
    ),
    "leaders alone": ("distributed-inference", {"leader": {"image": "i"}, "servingPort": {"port": 80}}),
    **{
        f"distributed {name}": ("distributed-training", {"image": "i", "numWorkers": 5, "distributedFramework": name})
        for name in ("PyTorch", "MPI", "TF", "JAX")
    },
    "distributed with a master of its own": (
        "distributed-training",
        {"image": "i", "numWorkers": 5, "masterSpec": {"image": "j"}},
    ),
}
#: What an item of a list, or an object, needs beside the member in question.
NEEDED: dict[str, dict[str, Any]] = {
    "environmentVariables[0]": {"name": "n"},
    "labels[0]": {"name": "n"},
    "annotations[0]": {"name": "n"},
    "ports[0]": {"container": 1, "serviceType": "NodePort"},
    "exposedUrls[0]": {"container": 1},
    "relatedUrls[0]": {"url": "u", "type": "t"},
    "tolerations[0]": {"key": "k", "operator": "Exists", "effect": "NoExecute"},
    "imagePullSecrets[0]": {"name": "s"},
    "extendedResources[0]": {"resource": "a/b"},
    "pvc[0]": {"path": "/p", "claimName": "c"},
    "claimInfo": {"size": "1G", "accessModes": {"readWriteMany": True}},
    "addedAttrValues[0]": {"key": "k"},
    "dataVolume[0]": {"id": "x", "mountPath": "/d"},
    "configMapVolume[0]": {"configMap": "c", "mountPath": "/c"},
    "secretVolume[0]": {"secret": "s", "mountPath": "/s"},
    "emptyDirVolume[0]": {"path": "/e"},
    "hostPath[0]": {"path": "/h", "mountPath": "/h"},
    "nfs[0]": {"server": "s", "path": "/n", "mountPath": "/n"},
    "s3[0]": {"bucket": "b", "path": "/s"},
    "git[0]": {"repository": "r", "path": "/g", "passwordSecret": "s"},
    "secretRef": {"name": "s"},
    "podAffinity": {"key": "k", "type": "Required"},
    "matchExpressions[0]": {"key": "k", "operator": "In"},
    "readiness": {"handler": {"httpGet": {"port": 8080, "path": "/"}}},
}
#: Members that mean something only beside these.
BESIDE: dict[str, dict[str, Any]] = {
    "gpuPortionRequest": {"gpuRequestType": "portion"},
    "gpuPortionLimit": {"gpuRequestType": "portion", "gpuPortionRequest": 0.5},
    "gpuMemoryRequest": {"gpuRequestType": "memory"},
    "gpuMemoryLimit": {"gpuRequestType": "memory", "gpuMemoryRequest": "1G"},
    "gpuRequestType": {"gpuPortionRequest": 0.5, "gpuMemoryRequest": "1G"},
    # A launcher that is not as the workers are has no GPU.
    "masterSpecSameAsWorker": {"compute": {"gpuDevicesRequest": 1}},
    "runAsUid": {"uidGidSource": "custom"},
    "runAsGid": {"uidGidSource": "custom"},
}


def declared(struct: type, here: str = "") -> Iterator[tuple[str, Field]]:
    for field in fields_of(struct):
        path = f"{here}{field.rest}"
        if field.struct is None:
            yield path, field
        else:
            yield from declared(field.struct, path + ("[0]." if field.is_list else "."))


def values(field: Field) -> list[Any]:
    """Some that are allowed; an object that holds one of them and not another says the member."""
    shape: Any = field.item if field.is_list else field.shape
    found: list[Any] = ["12", "13"]
    if isinstance(shape, inspect.BoolType):
        found = [True, False]
    elif isinstance(shape, inspect.IntType):
        found = [2, 3]
    elif isinstance(shape, inspect.FloatType):
        found = [0.5, 0.25]
    elif isinstance(shape, inspect.LiteralType):
        found = list(shape.values)
    elif field.rest == "priorityClass":
        found = ["low", "very-high"]
    return [[value] for value in found] if field.is_list else found


def surroundings(path: str) -> dict[str, Any]:
    """Leaves that the one at the path needs."""
    steps = path.split(".")
    found: dict[str, Any] = {}
    for number, step in enumerate(steps[:-1]):
        if step in NEEDED:
            found |= leaves(NEEDED[step], ".".join(steps[: number + 1]))
    return found | (leaves(BESIDE[steps[-1]], ".".join(steps[:-1])) if steps[-1] in BESIDE else {})


def printed(kind: str, found: dict[str, Any]) -> tuple[str, set[str]]:
    objects, losses = render_spec(KINDS[kind], "x", "team-a", rebuild(found))
    return json.dumps(objects, sort_keys=True), {loss.path for loss in losses}


def is_said_anyway(field: Field, value: Any) -> bool:
    """Whether it may be left out: a switch that is off, or the value that holds by itself."""
    return value is False or value == field.about.default


@pytest.mark.parametrize("base", BASES)
def test_members_are_said_or_listed(base: str) -> None:
    key, spec = BASES[base]
    silent = []
    for path, field in declared(KINDS[key].spec):
        whole = leaves(spec) | surroundings(path)
        made = {json.dumps(value): printed(key, whole | {path: value}) for value in values(field)}
        # Where a value is that of the surroundings, the member is said by being there.
        texts = {text for text, _ in made.values()}
        if path not in whole:
            texts.add(printed(key, whole)[0])
        for written, (text, listed) in made.items():
            is_silent = path not in listed and texts == {text}
            if is_silent and not is_said_anyway(field, json.loads(written)):
                silent.append(f"{path}: {written}")
    assert silent == []


@pytest.mark.parametrize("base", BASES)
def test_nothing_is_listed_that_the_spec_has_not(base: str) -> None:
    key, spec = BASES[base]
    for path, field in declared(KINDS[key].spec):
        found = leaves(spec) | surroundings(path) | {path: values(field)[0]}
        assert printed(key, found)[1] <= set(leaves(rebuild(found)))


def test_items_without_effect_are_listed_and_shift_no_others() -> None:
    """The older request may have items that lack a mandatory member."""
    ports = [{"serviceType": "NodePort"}, {"container": 80, "serviceType": "ClusterIP", "name": "web"}]
    _, losses = render_spec(KINDS["training"], "x", "team", {"image": "i", "ports": ports})
    found = {loss.path: loss.reason for loss in losses}
    assert set(found) == {"ports[0].serviceType", "ports[1].name"}
    assert "mandatory" in found["ports[0].serviceType"]
