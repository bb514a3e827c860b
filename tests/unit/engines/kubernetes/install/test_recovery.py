"""The organization as the queues of a cluster carry it: all of it comes back, of the chosen installation alone."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.base import DesiredOrganization
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.install.recovery import read_organization
from fairlead.engines.kubernetes.render.organization import render_queues
from fairlead.model.errors import Refused
from tests.unit.engines.kubernetes.render.test_organization import TOLD


def queues(cluster: str, organization: DesiredOrganization = TOLD) -> list[objects.Metadata]:
    rendered = [queue["metadata"] for queue in render_queues(organization, cluster)]
    return [msgspec.convert(metadata, type=objects.Metadata) for metadata in rendered]


def test_everything_comes_back() -> None:
    recovered = read_organization(queues("c"), "")
    assert recovered.cluster_id == "c"
    assert recovered.departments == TOLD.departments
    assert recovered.projects == TOLD.projects
    assert recovered.node_pools == TOLD.node_pools


def test_one_of_several_installations_is_chosen() -> None:
    assert read_organization([*queues("a"), *queues("b")], "b").cluster_id == "b"


@pytest.mark.parametrize(
    ("listed", "cluster", "want"),
    [
        ([], "", "nothing can be recovered"),
        (["a", "b"], "", "choose one with --cluster-id: a, b"),
        (["a"], "b", "nothing of installation b; it has a"),
    ],
    ids=["nothing there", "several", "another one"],
)
def test_what_cannot_be_recovered_is_refused(listed: list[str], cluster: str, want: str) -> None:
    given: list[Any] = [queue for name in listed for queue in queues(name)]
    with pytest.raises(Refused, match=want):
        read_organization(given, cluster)
