"""What the Kubernetes engine says of pods before their start."""

from fairlead.engines.kubernetes.effects import review
from fairlead.kinds import KINDS
from fairlead.model.fields import build


def test_a_launcher_is_told_that_nothing_starts_its_processes() -> None:
    kind = KINDS["distributed-training"]
    launcher, worker = kind.podsets(build(kind.spec, {"image": "x", "distributedFramework": "MPI"}))
    assert [field for field, _ in review(launcher).advisory] == ["distributedFramework"]
    assert review(worker).advisory == ()
