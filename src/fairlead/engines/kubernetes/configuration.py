"""From what the operator wrote to an engine for a cluster. Loaded by `app` only when the settings ask for it."""

import os
from collections.abc import Callable, Mapping
from typing import Protocol

from fairlead.engines.kubernetes.access import load_access
from fairlead.engines.kubernetes.api import Api
from fairlead.engines.kubernetes.engine import KubernetesEngine
from fairlead.engines.kubernetes.resources import Resource
from fairlead.engines.kubernetes.sharing import share_files
from fairlead.formats.crd import GROUP, VERSION, plural_of
from fairlead.kinds import KINDS
from fairlead.model.allowed import parse_allowed
from fairlead.model.supplies import LoadKept


class Written(Protocol):
    """What is asked of the application's settings."""

    @property
    def kubeconfig(self) -> str: ...

    @property
    def keys_secret(self) -> str: ...

    @property
    def allow(self) -> tuple[str, ...]: ...


def make_engine(written: Written, cluster_id: Callable[[], str], load_kept: LoadKept) -> KubernetesEngine:
    """The engine of a cluster; raises Refused when no cluster is known, Invalid when nobody can allow what is given."""
    allowed = parse_allowed(written.allow)
    api = Api(load_access(written.kubeconfig, os.environ))
    return KubernetesEngine(api, cluster_id, custom_resources(), load_kept, allowed)


async def share_keys(written: Written, mine: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that the cluster keeps for all servers; those of `mine` become them where it has none yet."""
    api = Api(load_access(written.kubeconfig, os.environ))
    try:
        return await share_files(api, written.keys_secret, mine)
    finally:
        api.close()


def custom_resources() -> list[Resource]:
    """The kinds of objects that mean a workload."""
    named = [kind for kind in KINDS.values() if kind.letter]
    return [Resource(f"{GROUP}/{VERSION}", kind.resource, plural_of(kind)) for kind in named]
