"""The fields of a pod's container beyond its command: storage, security, network, placement, compute.

Kinds make them from a spec (`kinds/pods.py`); engines take what they can provide. A member carries the default that the
spec's field declares; None means that nothing was said. On the wire members have the spec's REST names.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import msgspec


class _Fields(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Under REST names on the wire. A member of a spec that is missing here is an error when a pod is made."""


@cache
def _members(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)


class NamedValue(_Fields, frozen=True, kw_only=True):
    """A label or an annotation."""

    name: str
    value: str | None = None


class PullSecret(_Fields, frozen=True, kw_only=True):
    """Opens the image's registry."""

    name: str
    #: Whether it is a credential of the workload's creator.
    user_credential: bool = False


# Compute


class ExtendedAmount(_Fields, frozen=True, kw_only=True):
    resource: str
    quantity: str = "1"


class ContainerCompute(_Fields, frozen=True, kw_only=True):
    """What was asked of the node, as it was written; `Request` and the container's limits say what that means."""

    cpu_core_request: int | float | None = None
    cpu_core_limit: int | float | None = None
    cpu_memory_request: str | None = None
    cpu_memory_limit: str | None = None
    gpu_devices_request: int | None = None
    gpu_request_type: str | None = None
    gpu_portion_request: int | float | None = None
    gpu_portion_limit: int | float | None = None
    gpu_memory_request: str | None = None
    gpu_memory_limit: str | None = None
    mig_profile: str | None = None
    large_shm_request: bool | None = None
    extended_resources: tuple[ExtendedAmount, ...] = ()


# Placement


class NodeExpression(_Fields, frozen=True, kw_only=True):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] | None = None


class NodeTerm(_Fields, frozen=True, kw_only=True):
    """Matches a node for which all expressions hold."""

    match_expressions: tuple[NodeExpression, ...] | None = None


class RequiredNodes(_Fields, frozen=True, kw_only=True):
    """One of these terms must match the node."""

    node_selector_terms: tuple[NodeTerm, ...] | None = None


class PodAffinityRule(_Fields, frozen=True, kw_only=True):
    """`Required` or `Preferred`: pods of the workload share a value of this node label."""

    type: str | None = None
    key: str | None = None


class PodToleration(_Fields, frozen=True, kw_only=True):
    operator: Literal["Equal", "Exists"]
    key: str
    effect: str
    name: str | None = None
    value: str | None = None
    #: Only with the effect NoExecute.
    seconds: int | None = None


# Network

#: Who may open a URL.
UrlAccess = Literal["public", "authenticatedUsers", "authorizedUsers", "authorizedGroups"]


class HttpProbe(_Fields, frozen=True, kw_only=True):
    port: int | None = None
    path: str = "/"
    host: str | None = None
    scheme: str = "HTTP"


class TcpProbe(_Fields, frozen=True, kw_only=True):
    """Asks whether a port accepts connections; no spec can say it, kinds that serve do."""

    port: int


class ProbeHandlers(_Fields, frozen=True, kw_only=True):
    http_get: HttpProbe | None = None
    tcp_socket: TcpProbe | None = None


class ReadinessProbe(_Fields, frozen=True, kw_only=True):
    handler: ProbeHandlers | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    timeout_seconds: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3

    @property
    def port(self) -> int | None:
        """The port that is probed; None if the probe names none."""
        if self.handler is None:
            return None
        probe = self.handler.http_get or self.handler.tcp_socket
        return probe.port if probe is not None else None


class ContainerProbes(_Fields, frozen=True, kw_only=True):
    readiness: ReadinessProbe | None = None


class OfferedPort(_Fields, frozen=True, kw_only=True):
    """A port by which the pod is reached."""

    container: int
    #: LoadBalancer, NodePort or ClusterIP.
    service_type: str | None = None
    #: The port outside; None leaves the choice to the engine.
    external: int | None = None
    name: str | None = None
    tool_type: str | None = None
    tool_name: str | None = None


class OfferedUrl(_Fields, frozen=True, kw_only=True):
    """A URL by which the pod is reached."""

    container: int
    url: str | None = None
    authorization_type: UrlAccess = "authenticatedUsers"
    authorized_users: tuple[str, ...] = ()
    authorized_groups: tuple[str, ...] = ()
    #: Set where it is not HTTP.
    protocol: str | None = None
    name: str | None = None
    tool_type: str | None = None
    tool_name: str | None = None


class RelatedPage(_Fields, frozen=True, kw_only=True):
    """A page elsewhere that is shown beside the workload."""

    url: str
    type: str
    name: str | None = None


# Security


class ContainerSecurity(_Fields, frozen=True, kw_only=True):
    #: fromTheImage, fromIdpToken or custom; None if the spec has no security at all.
    uid_gid_source: str | None = None
    run_as_uid: int | None = None
    run_as_gid: int | None = None
    #: Group ids between commas.
    supplemental_groups: str | None = None
    run_as_non_root: bool = False
    read_only_root_filesystem: bool = False
    capabilities: tuple[str, ...] = ()
    seccomp_profile_type: str | None = None
    drop_all_capabilities: bool | None = None
    allow_privilege_escalation: bool | None = None
    host_ipc: bool = False
    host_network: bool = False

    @property
    def ids_without_effect(self) -> tuple[tuple[str, str], ...]:
        """Ids that are given although the image decides, as (path of the field, why they have no effect)."""
        if self.uid_gid_source == "custom":
            return ()
        ids = {"runAsUid": self.run_as_uid, "runAsGid": self.run_as_gid, "supplementalGroups": self.supplemental_groups}
        why = "it has an effect with uidGidSource custom only"
        return tuple((f"security.{name}", why) for name, given in ids.items() if given not in (None, ""))


# Storage


class ClaimModes(_Fields, frozen=True, kw_only=True):
    read_write_once: bool = True
    read_only_many: bool = False
    read_write_many: bool = False


class ClaimAttribute(_Fields, frozen=True, kw_only=True):
    key: str
    value: str | None = None


class ClaimRequest(_Fields, frozen=True, kw_only=True):
    """What a new claim is to be."""

    size: str | None = None
    storage_class: str | None = None
    access_modes: ClaimModes | None = None
    volume_mode: str = "Filesystem"
    added_attr_values: tuple[ClaimAttribute, ...] = ()


class _MountAtPath(_Fields, frozen=True, kw_only=True):
    """A volume whose place in the container is called `path`."""

    path: str
    #: Tells items of a list apart.
    name: str | None = None

    @property
    def target(self) -> str:
        """Where it appears in the container."""
        return self.path


class _MountAtMountPath(_Fields, frozen=True, kw_only=True):
    """A volume whose place in the container is called `mountPath`."""

    mount_path: str
    name: str | None = None

    @property
    def target(self) -> str:
        return self.mount_path


class ClaimMount(_MountAtPath, frozen=True, kw_only=True):
    existing_pvc: bool = False
    claim_name: str | None = None
    read_only: bool = False
    ephemeral: bool = False
    data_sharing: bool = False
    claim_info: ClaimRequest | None = None


class ConfigMapMount(_MountAtMountPath, frozen=True, kw_only=True):
    config_map: str
    sub_path: str | None = None
    default_mode: str = "0644"


class SecretMount(_MountAtMountPath, frozen=True, kw_only=True):
    secret: str
    default_mode: str = "0644"


class EmptyDirMount(_MountAtPath, frozen=True, kw_only=True):
    medium: str | None = None
    size_limit: str | None = None


class SharedDataMount(_Fields, frozen=True, kw_only=True):
    """A data volume, which another project may have shared."""

    id: str
    mount_path: str

    @property
    def name(self) -> str:
        return self.id

    @property
    def target(self) -> str:
        return self.mount_path


class GitCredentials(_Fields, frozen=True, kw_only=True):
    name: str | None = None
    authentication_method: str = "password"
    secret_key_of_user: str = "User"  # noqa: S105 - the name of a key
    secret_key_of_password: str = "Password"  # noqa: S105 - the name of a key


class GitMount(_MountAtPath, frozen=True, kw_only=True):
    repository: str
    branch: str | None = None
    revision: str | None = None
    #: The older way to sign in; `secret_ref` wins.
    password_secret: str | None = None
    secret_key_of_user: str = "User"  # noqa: S105 - the name of a key
    secret_key_of_password: str = "Password"  # noqa: S105 - the name of a key
    secret_ref: GitCredentials | None = None

    @property
    def secret(self) -> str:
        """The secret that opens the repository; empty for a public one."""
        secret_name = self.secret_ref.name if self.secret_ref is not None else None
        return secret_name or self.password_secret or ""


class HostPathMount(_MountAtMountPath, frozen=True, kw_only=True):
    path: str
    read_only: bool = True
    mount_propagation: str = "None"


class NfsMount(_MountAtMountPath, frozen=True, kw_only=True):
    server: str
    path: str
    read_only: bool = True


class BucketMount(_MountAtPath, frozen=True, kw_only=True):
    bucket: str
    url: str | None = None
    access_key_secret: str | None = None
    secret_key_of_access_key_id: str = "AccessKeyId"  # noqa: S105 - the name of a key
    secret_key_of_secret_key: str = "SecretKey"  # noqa: S105 - the name of a key


Mount = (
    ClaimMount
    | ConfigMapMount
    | SecretMount
    | EmptyDirMount
    | SharedDataMount
    | GitMount
    | HostPathMount
    | NfsMount
    | BucketMount
)


class ContainerStorage(_Fields, frozen=True, kw_only=True):
    """What is mounted into the container, by kind of volume."""

    empty_dir_volume: tuple[EmptyDirMount, ...] = ()
    host_path: tuple[HostPathMount, ...] = ()
    nfs: tuple[NfsMount, ...] = ()
    pvc: tuple[ClaimMount, ...] = ()
    data_volume: tuple[SharedDataMount, ...] = ()
    config_map_volume: tuple[ConfigMapMount, ...] = ()
    secret_volume: tuple[SecretMount, ...] = ()
    git: tuple[GitMount, ...] = ()
    s3: tuple[BucketMount, ...] = ()

    def mounts(self) -> Iterator[tuple[str, Mount]]:
        """Every volume, with the path of its field as messages name it: `storage.pvc[data]`."""
        for field in _members(ContainerStorage):
            mounts: tuple[Mount, ...] = getattr(self, field.name)
            for number, mount in enumerate(mounts):
                yield f"storage.{field.encode_name}[{mount.name or number}]", mount


NO_COMPUTE = ContainerCompute()
NO_SECURITY = ContainerSecurity()
NO_STORAGE = ContainerStorage()


class ContainerFields(_Fields, frozen=True, kw_only=True):
    """Everything that a spec says of a pod beside image, command and environment."""

    image_pull_policy: str | None = None
    image_pull_secrets: tuple[PullSecret, ...] = ()
    create_home_dir: bool | None = None
    compute: ContainerCompute = NO_COMPUTE
    labels: tuple[NamedValue, ...] = ()
    annotations: tuple[NamedValue, ...] = ()
    node_type: str | None = None
    node_affinity_required: RequiredNodes | None = None
    pod_affinity: PodAffinityRule | None = None
    tolerations: tuple[PodToleration, ...] = ()
    probes: ContainerProbes | None = None
    storage: ContainerStorage = NO_STORAGE
    security: ContainerSecurity = NO_SECURITY
    node_pools: tuple[str, ...] = ()
    ports: tuple[OfferedPort, ...] = ()
    exposed_urls: tuple[OfferedUrl, ...] = ()
    related_urls: tuple[RelatedPage, ...] = ()

    @property
    def readiness(self) -> ReadinessProbe | None:
        return self.probes.readiness if self.probes is not None else None

    def find_annotation(self, name: str) -> str | None:
        return next((each.value or "" for each in self.annotations if each.name == name), None)


NO_FIELDS = ContainerFields()


def given(fields: msgspec.Struct) -> dict[str, object]:
    """Fields as plain data under their REST names: without what was not given, with the defaults of what was."""
    plain: dict[str, object] = {}
    for field in _members(type(fields)):
        value = getattr(fields, field.name)
        is_silent = field.default is None or isinstance(field.default, tuple | msgspec.Struct)
        if not (is_silent and value == field.default):
            plain[field.encode_name] = _plain(value)
    return plain


def _plain(value: object) -> Any:
    if isinstance(value, msgspec.Struct):
        return given(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
