"""Whose command and variables lists show."""

import pytest

from fairlead.api.workloads.views import ViewContext
from fairlead.control.access import permission_of, unreadable_specs
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.organization import Cluster, Project
from fairlead.model.records.people import Caller
from tests import builders

CLUSTER = Cluster(id=builders.CLUSTER, version=1, name="lab", tenant_id=1, created_at=0)
PROJECT = Project(
    id="1",
    version=1,
    name="default",
    cluster_id=CLUSTER.id,
    department_id="1",
    department_name="default",
    created_at=0,
    updated_at=0,
    created_by="x",
    updated_by="x",
)
LISTS = frozenset({"workloads:read"})
READS = LISTS | {permission_of("trainings:read")}


@pytest.mark.parametrize(
    ("everywhere", "in_project", "want_own", "want_removed"),
    [(LISTS, READS, True, False), (READS, LISTS, False, True), (LISTS, LISTS, False, False)],
)
def test_a_removed_project_is_shown_as_the_whole_installation(
    everywhere: frozenset[str], in_project: frozenset[str], want_own: bool, want_removed: bool
) -> None:
    rights = {INSTALLATION_SCOPE_KEY: everywhere, "project/1": in_project}
    views = ViewContext(
        now=0,
        cluster=CLUSTER,
        projects={"1": PROJECT},
        unreadable=unreadable_specs(Caller("ada@example.com", "2", rights=rights)),
    )
    assert views.shows_process(builders.workload()) is want_own
    assert views.shows_process(builders.workload(project_id="gone")) is want_removed
