"""When nothing need be sent after a start: everything is there, and what it was applied with is what is wished."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import path_of
from fairlead.engines.kubernetes.plan.existing_objects import (
    ExistingObjects,
    data_hash,
    digest_of,
    find_digests,
    is_up_to_date,
    with_digest,
)
from fairlead.engines.kubernetes.render.labels import DIGEST
from fairlead.engines.kubernetes.render.workload import RenderedObjects, render_objects
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import build
from tests.unit.engines.golden_place import GOLDEN_PLACE

KIND = KINDS["training"]
SPEC = {"image": "x", "ports": [{"container": 80, "serviceType": "ClusterIP"}]}
COPY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "golden-config-a", "namespace": "runai-team-a"},
    "data": {"a": "1"},
}


def render(**spec: Any) -> RenderedObjects:
    return render_objects(GOLDEN_PLACE, KIND.podsets(build(KIND.spec, SPEC | spec)))


def applied(**spec: Any) -> ExistingObjects:
    """What a cluster has after such a workload was applied, as its watches and lists show it."""
    rendered = render(**spec)
    runners = [with_digest(runner, digest_of(rendered)) for runner in rendered.runners]
    makers = [(body["kind"], msgspec.convert(body["metadata"], objects.Metadata)) for body in runners]
    listed = {path_of(body): data_hash(body.get("data")) for body in (*rendered.services, COPY)}
    return ExistingObjects(find_digests(makers, 1), listed)


def is_current(existing: ExistingObjects, **spec: Any) -> bool:
    rendered = render(**spec)
    return is_up_to_date(existing, digest_of(rendered), (COPY, *rendered.runners, *rendered.services))


def test_an_object_in_its_desired_state_is_kept() -> None:
    existing = applied()
    assert len(existing.digests) == 1
    assert is_current(existing)


@pytest.mark.parametrize(
    "spec", [{"command": "run"}, {"ports": []}, {"backoffLimit": 2}], ids=["command", "ports", "backoff limit"]
)
def test_another_desired_state_is_not_applied(spec: dict[str, Any]) -> None:
    assert not is_current(applied(), **spec)


def test_nor_does_one_of_which_something_is_missing() -> None:
    there = applied()
    for path in there.survey:
        assert not is_current(
            ExistingObjects(there.digests, {name: what for name, what in there.survey.items() if name != path})
        )
    assert not is_current(ExistingObjects({}, there.survey))


def test_nor_one_whose_copies_hold_something_else() -> None:
    there = applied()
    assert not is_current(ExistingObjects(there.digests, {**there.survey, path_of(COPY): data_hash({"a": "2"})}))


def test_nor_one_that_has_more_than_is_wished() -> None:
    there = applied()
    [(path, digest)] = there.digests.items()
    assert not is_current(ExistingObjects({path: digest, f"{path}-2": digest}, there.survey))


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({}, {"/apis/batch/v1/namespaces/n/jobs/j": "d"}),
        ({"labels": {"fairlead/run": "2"}}, {}),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {}),
        ({"annotations": {}}, {"/apis/batch/v1/namespaces/n/jobs/j": ""}),
    ],
    ids=["of this run", "of another run", "on its way out", "of a server that wrote none"],
)
def test_digests_of_what_is_there(members: dict[str, Any], want: dict[str, str]) -> None:
    given = {"name": "j", "namespace": "n", "labels": {"fairlead/run": "1"}, "annotations": {DIGEST: "d"}, **members}
    assert find_digests([("Job", msgspec.convert(given, objects.Metadata))], 1) == want
