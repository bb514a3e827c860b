"""Each golden request, and the pod sets that it means."""

from pathlib import Path

import msgspec
import pytest

from fairlead.admission.admit import admit
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.model.pods.podset import PodSet

FOLDER = Path(__file__).parents[2] / "golden"
REQUESTS = sorted(FOLDER.glob("*/*.request.json"))


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_request_means_these_pods(path: Path) -> None:
    kind = KINDS[path.parent.name]
    submission = read_submission(kind, path.read_bytes())
    admit(kind, submission)
    want = path.with_name(path.name.replace(".request.", ".podsets.")).read_bytes()
    got = msgspec.json.encode(kind.podsets(submission.spec))
    assert msgspec.json.decode(got, type=list[PodSet]) == msgspec.json.decode(want, type=list[PodSet], strict=True)


def test_every_kind_has_golden_requests() -> None:
    assert {path.parent.name for path in REQUESTS} == set(KINDS)
