"""In which node pool a workload's objects begin, and that they stay as they began when that pool is gone."""

from typing import Any, cast

import msgspec
import pytest

from fairlead.engines.base import DesiredWorkload
from fairlead.engines.kubernetes.apply.applier import ObjectApplier, RenderSources
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.client.installed_kinds import InstalledKinds
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.render.context import NO_LAUNCH_CHOICES, LaunchChoices
from fairlead.engines.kubernetes.render.workload import render_objects
from tests import builders

POOL, QUEUE, POOLS = "kai.scheduler/node-pool", "kai.scheduler/queue", "kai.scheduler/node-pools"


def job(*missing: str, launch: LaunchChoices = NO_LAUNCH_CHOICES) -> dict[str, Any]:
    run = DesiredWorkload(
        workload_id="w",
        name="train",
        project="team-a",
        namespace="runai-team-a",
        run=1,
        podsets=(builders.podset(),),
        priority_class="low",
        is_preemptible=True,
        node_pools=("h100", "default"),
        missing_pools=missing,
    )
    sources = RenderSources(lambda id: None, lambda namespace: "", lambda workload: ())
    api, organization = cast(Api, None), cast(OrganizationSync, None)
    place = ObjectApplier(api, lambda: "c", InstalledKinds(), organization, sources).render_context(run, launch)
    [found] = render_objects(place, run.podsets).runners
    return found


@pytest.mark.parametrize(
    ("missing", "want"),
    [((), ("h100", "team-a-h100")), (("h100",), (None, "team-a")), (("h100", "default"), ("h100", "team-a-h100"))],
    ids=["all there", "the first gone", "all gone"],
)
def test_it_begins_in_the_first_pool_that_there_is(missing: tuple[str, ...], want: tuple[str | None, str]) -> None:
    metadata = job(*missing)["spec"]["template"]["metadata"]
    assert (metadata["labels"].get(POOL), metadata["labels"][QUEUE]) == want
    assert metadata["annotations"][POOLS] == "h100 default"


@pytest.mark.parametrize("missing", [(), ("h100",)], ids=["in the first", "in the second"])
def test_what_was_begun_stays_as_it_is_when_pools_come_and_go(missing: tuple[str, ...]) -> None:
    first = job(*missing)
    launch = launch_choices_of(msgspec.convert(first["metadata"], objects.Metadata))
    assert [job(*now, launch=launch) for now in ((), ("h100",), ("default",))] == [first] * 3
