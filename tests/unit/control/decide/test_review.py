"""What an engine refuses or ignores: the paths that it is told with, and what is refused at submission already."""

from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.control.decide.review import forbidden_fields, review_of
from fairlead.engines.base import Review
from fairlead.engines.kubernetes.render.review import review as review_on_cluster
from fairlead.formats.yaml.spec import yaml_path
from fairlead.kinds import KINDS
from fairlead.model.allowed import NOTHING_ALLOWED
from fairlead.model.pods.podset import PodSet
from fairlead.model.spec.fields import build
from tests import builders

TOLD = Review(refused=(("security.capabilities", "no"), ("storage.nfs[0]", "no")), advisory=(("compute.x", "less"),))


@pytest.mark.parametrize(
    ("member", "want"),
    [("", ["security.capabilities", "compute.x"]), ("leader", ["leader.security.capabilities", "leader.compute.x"])],
)
def test_paths_of_a_role_begin_with_its_member(member: str, want: list[str]) -> None:
    told = review_of(builders.podset(member=member), lambda podset: TOLD)
    assert [told.refused[0][0], told.advisory[0][0]] == want


def secured(member: str) -> PodSet:
    podset = builders.podset(member=member)
    fields = builders.container_fields({"security": {"hostIpc": True}})
    return replace(podset, container=replace(podset.container, fields=fields))


def test_only_privileges_and_forbidden_mounts_are_refused_at_submission() -> None:
    sets = [secured(""), secured("worker"), builders.podset()]
    assert forbidden_fields(sets, lambda podset: TOLD) == [
        ("security.capabilities", "no"),
        ("worker.security.capabilities", "no"),
    ]
    mounted = replace(TOLD, forbidden=(("storage.emptyDirVolume[0].path", "no"),))
    assert forbidden_fields([builders.podset(member="worker")], lambda podset: mounted) == [
        ("worker.storage.emptyDirVolume[0].path", "no")
    ]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"leader": {"security": {"capabilities": ["SYS_ADMIN"]}}}, ["leader.security.capabilities"]),
        (
            {"leader": {}, "workers": 1, "worker": {"security": {"capabilities": ["SYS_ADMIN"]}}},
            ["worker.security.capabilities"],
        ),
        ({"leader": {"security": {"uidGidSource": "fromIdpToken"}}}, ["leader.security.uidGidSource"]),
    ],
)
def test_what_a_cluster_never_gives_is_known_at_submission(spec: dict[str, Any], want: list[str]) -> None:
    kind = KINDS["distributed-inference"]
    podsets = kind.podsets(build(kind.spec, spec))
    refused = forbidden_fields(podsets, lambda podset: review_on_cluster(podset, NOTHING_ALLOWED))
    assert [field for field, _ in refused] == want


def test_paths_in_workload_yaml() -> None:
    assert yaml_path(KINDS["training"], "security.capabilities") == "spec.capabilities"
    assert yaml_path(KINDS["training"], "security.uidGidSource") == "spec.runAsUser"
