"""Whether an autoscaler adds nodes to the cluster, and which labels pods then need for nodes of their pools.

The engine has one; what autoscalers report about waiting pods is read by `observe/node_scaling.py`.
"""

from fairlead.engines.base import DesiredWorkload
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.client.installed_kinds import InstalledKinds
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.render.organization import find_pool_selectors


class NodeAutoscaling:
    def __init__(
        self, setting: str, kinds: InstalledKinds, cache: ClusterCache, organization: OrganizationSync
    ) -> None:
        """`setting`: `on`, `off`, or `auto` to find out."""
        self._setting = setting
        self._kinds = kinds
        self._cache = cache
        self._organization = organization

    @property
    def is_watched(self) -> bool:
        """Whether what autoscalers report is read."""
        return self._setting != "off"

    def may_add_nodes(self) -> bool:
        """Whether nodes may be added for pods that fit none."""
        if self._setting == "auto":
            return self._kinds.has_karpenter or self._cache.scaling.has_any
        return self._setting == "on"

    def find_pool_selectors(self, workload: DesiredWorkload) -> tuple[str, ...]:
        pools = self._organization.node_pools if self.may_add_nodes() else ()
        return find_pool_selectors(pools, workload.node_pools)
