"""Which kinds of objects a cluster has besides those of every cluster.

The engine has one and asks for everything at its start; its parts share it. A controller's kind may be added later.
"""

from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.client.resources import (
    ALWAYS_THERE,
    KARPENTER_POOL,
    POD_GROUP,
    RESOURCE_CLAIM_TEMPLATE,
    RUNNERS,
    SHARD,
    Resource,
)
from fairlead.engines.kubernetes.client.writer import has_kind


class InstalledKinds:
    def __init__(self) -> None:
        #: The controllers of workloads that the cluster has.
        self.runners: tuple[Resource, ...] = ALWAYS_THERE
        self.has_pod_groups = False
        #: Whether it has templates of claims for devices.
        self.has_device_claims = False
        #: Whether KAI's operator learns of node pools.
        self.has_shards = False
        self.has_karpenter = False

    async def discover(self, api: Api) -> None:
        self.runners = tuple([kind for kind in RUNNERS if kind in ALWAYS_THERE or await has_kind(api, kind)])
        self.has_pod_groups = await has_kind(api, POD_GROUP)
        self.has_device_claims = await has_kind(api, RESOURCE_CLAIM_TEMPLATE)
        self.has_shards = await has_kind(api, SHARD)
        self.has_karpenter = await has_kind(api, KARPENTER_POOL)

    def add_runner(self, runner: Resource) -> None:
        self.runners = tuple(dict.fromkeys((*self.runners, runner)))
