"""What the Kubernetes engine says of pods before their start."""

from typing import Any

import pytest

from fairlead.engines.kubernetes.render.review import refusal_of, review
from fairlead.kinds import KINDS
from fairlead.model.allowed import Allowed
from fairlead.model.pods.podset import PodSet
from fairlead.model.spec.fields import build


def podsets(**spec: Any) -> tuple[PodSet, ...]:
    kind = KINDS["distributed-training"]
    found: tuple[PodSet, ...] = kind.podsets(build(kind.spec, {"image": "x", **spec}))
    return found


@pytest.mark.parametrize(
    ("spec", "kinds", "want"),
    [
        ({"distributedFramework": "MPI"}, (), "install the MPI operator"),
        ({"distributedFramework": "MPI"}, ("MPIJob",), ""),
        ({"distributedFramework": "MPI", "restartPolicy": "Always"}, ("MPIJob",), "only Never and OnFailure"),
        ({"distributedFramework": "PyTorch"}, (), ""),
    ],
    ids=["no operator", "operator", "restarts for ever", "nothing is launched"],
)
def test_launchers_need_an_operator(spec: dict[str, Any], kinds: tuple[str, ...], want: str) -> None:
    words = refusal_of(podsets(**spec), kinds)
    assert bool(words) == bool(want)
    assert want in words


def test_a_launcher_alone_is_not_refused() -> None:
    launcher, _ = podsets(distributedFramework="MPI")
    assert review(launcher, Allowed()).refused == ()


def test_labels_that_only_the_server_sets_are_named() -> None:
    given = [{"name": name, "value": "x"} for name in ("kai.scheduler/queue", "team")]
    _, master = podsets(
        distributedFramework="PyTorch", labels=given, annotations=[{"name": "gpu-fraction", "value": "0.1"}]
    )
    notes = dict(review(master, Allowed()).advisory)
    assert {"labels[kai.scheduler/queue]", "annotations[gpu-fraction]"} == set(notes)
    assert all(why.startswith("dropped: ") for why in notes.values())


def test_labels_that_the_server_sets_on_every_pod_are_named() -> None:
    _, master = podsets(distributedFramework="PyTorch", labels=[{"name": "project", "value": "mine"}])
    [(path, why)] = review(master, Allowed()).advisory
    assert (path, why.partition(":")[0]) == ("labels[project]", "replaced")
