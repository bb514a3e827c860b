"""The Kubernetes engine beside watches that are behind and people who remove things: what it makes, keeps and says."""

from fairlead.engines.base import Remove
from fairlead.engines.kubernetes.resources import JOB, POD
from tests.contract.cluster_room import NAMESPACE_NAME, Cluster, Room, run, scenario

SUSPEND = Remove("w", NAMESPACE_NAME, keeps_claims=True)


@scenario
async def test_what_is_resumed_is_not_bare_even_before_anything_of_it_is_seen() -> None:
    cluster = Cluster()
    async with Room(cluster).open() as room:
        await room.wish(run())
        await room.until(lambda: room.report.run == 1)
        await room.wish(SUSPEND)
        await room.until(lambda: room.report.is_bare)
        cluster.hold(JOB, POD)
        await room.wish(run(number=2))
        await room.look()
        assert not room.report.is_bare
        await room.wish(SUSPEND)
        await room.until(lambda: room.report.is_bare)
        assert not cluster.all(JOB)
