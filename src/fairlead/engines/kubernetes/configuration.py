"""From the server's settings to the engine of a cluster. Loaded by `app` only if the settings ask for it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.client.resources import Resource
from fairlead.engines.kubernetes.engine import EngineSettings, KubernetesEngine
from fairlead.engines.kubernetes.kept_logs import KeptLogs
from fairlead.engines.kubernetes.loki import Loki
from fairlead.engines.kubernetes.prometheus import Prometheus
from fairlead.engines.kubernetes.shared_files import share_files
from fairlead.formats.crd import plural_of
from fairlead.formats.custom_resource import RUNAI_GROUP, api_version, custom_kinds
from fairlead.formats.legacy_policies import LEGACY_KINDS
from fairlead.formats.policy_crd import policy_api_version, policy_plural
from fairlead.model.allowed import parse_allowed
from fairlead.model.errors import Refused
from fairlead.model.pods.supplies import LoadKept
from fairlead.model.pods.urls import IngressSettings, is_host


class KubernetesOptions(Protocol):
    """The settings that are read here."""

    @property
    def kubeconfig(self) -> str: ...

    @property
    def group(self) -> str: ...

    @property
    def keys_secret(self) -> str: ...

    @property
    def allow(self) -> tuple[str, ...]: ...

    @property
    def ingress_class(self) -> str: ...

    @property
    def ingress_server(self) -> str: ...

    @property
    def ingress_tls(self) -> bool: ...

    @property
    def node_autoscaler(self) -> str: ...

    @property
    def prometheus_url(self) -> str: ...

    @property
    def loki_url(self) -> str: ...

    @property
    def loki_tenant(self) -> str: ...

    @property
    def data_dir(self) -> Path: ...

    @property
    def keep_logs_size(self) -> int: ...

    @property
    def domain(self) -> str: ...

    @property
    def port(self) -> int | None: ...

    @property
    def proxy_port(self) -> int | None: ...

    @property
    def tls_certificate(self) -> str: ...


def make_engine(written: KubernetesOptions, cluster_id: Callable[[], str], load_kept: LoadKept) -> KubernetesEngine:
    """The engine of a cluster; raises Refused if no cluster is configured, Invalid if an allowance is not valid."""
    keeps_logs = written.keep_logs_size > 0
    settings = EngineSettings(
        resource_kinds=custom_resource_kinds(written.group),
        allowed=parse_allowed(written.allow),
        ingress=read_ingress(written),
        node_autoscaler=written.node_autoscaler,
        kept_logs=KeptLogs(written.data_dir / "pod-logs", written.keep_logs_size) if keeps_logs else None,
        loki=Loki(written.loki_url, written.loki_tenant) if written.loki_url else None,
        prometheus=Prometheus(written.prometheus_url) if written.prometheus_url else None,
    )
    return KubernetesEngine(Api(load_access(written.kubeconfig, os.environ)), cluster_id, load_kept, settings)


def read_ingress(written: KubernetesOptions) -> IngressSettings | None:
    """The settings of Ingress objects; None if none are wanted. Raises Refused if a value is not valid there."""
    if not written.ingress_class:
        return None
    for flag, name in (("--ingress-class", written.ingress_class), ("--ingress-server", written.ingress_server)):
        if not is_host(name):
            raise Refused(
                f"{flag}: {name!r} is not a valid name for an Ingress; use lower-case letters, digits, - and ."
            )
    if not written.port or not written.proxy_port:
        raise Refused("--ingress-class needs --port and --proxy-port: Ingress objects lead to these ports")
    return IngressSettings(
        ingress_class=written.ingress_class,
        domain=written.domain.lower(),
        server=written.ingress_server,
        port=written.port,
        proxy_port=written.proxy_port,
        is_tls=bool(written.tls_certificate),
        has_certificate=written.ingress_tls,
    )


async def share_keys(written: KubernetesOptions, mine: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that all servers share; those of `mine` are added if the cluster has none yet."""
    api = Api(load_access(written.kubeconfig, os.environ))
    try:
        return await share_files(api, written.keys_secret, mine)
    finally:
        api.close()


def custom_resource_kinds(group: str = RUNAI_GROUP) -> list[Resource]:
    """The kinds of our custom resources: workloads, and policies in the older form."""
    workloads = [Resource(api_version(kind, group), kind.resource, plural_of(kind)) for kind in custom_kinds()]
    policies = [Resource(policy_api_version(name, group), name, policy_plural(name)) for name in LEGACY_KINDS]
    return [*workloads, *policies]
