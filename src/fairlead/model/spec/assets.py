"""The specs of assets: named parts of a workload's spec, and credentials.

Members that workloads have too use the workload's declaration. Members that only assets have are declared here.
"""

from typing import Annotated, Literal, cast, get_type_hints

import msgspec
from msgspec import UNSET, Meta

from fairlead.model.records.assets import Reference
from fairlead.model.spec.claims import Pvc
from fairlead.model.spec.compute import Compute
from fairlead.model.spec.environment import ConfigMapKey, PodFieldRef
from fairlead.model.spec.fields import ExcludeItemUnset, FieldInfo, Given, Maybe, PortNumber, Spec, Text, UpTo250, Uuid
from fairlead.model.spec.lifecycle import Stdin, Tty
from fairlead.model.spec.pod_fields import PodFields
from fairlead.model.spec.security import Security
from fairlead.model.spec.storage import S3, ConfigMapVolume, Git, HostPath, Nfs

ToolType = Literal[
    "jupyter-notebook",
    "pycharm",
    "visual-studio-code",
    "tensorboard",
    "rstudio",
    "mlflow",
    "custom",
    "matlab",
    "chatbot-ui",
]


def _pick(name: str, *sources: tuple[type, tuple[str, ...]], base: type[Spec] = Spec) -> type[Spec]:
    """A spec made of members of other specs, with the same declarations."""
    fields = []
    for source, members in sources:
        hints = get_type_hints(source, include_extras=True)
        fields += [(member, hints[member], UNSET) for member in members]
    picked = msgspec.defstruct(
        name, fields, bases=(base,), frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
    )
    return cast(type[Spec], picked)


class CredentialKey(Spec, frozen=True, kw_only=True):
    asset_id: Annotated[Maybe[Uuid], FieldInfo(text="The credential's id.", refers=Reference.CREDENTIAL)] = UNSET
    key: Annotated[Maybe[Text], FieldInfo(text="The key in it.")] = UNSET


class AssetVariable(Spec, frozen=True, kw_only=True):
    """An environment variable. A secret value is given as the credential that holds it."""

    name: Annotated[Maybe[Text], FieldInfo(text="The variable's name.")] = UNSET
    value: Annotated[Maybe[str], FieldInfo(text="Its value.")] = UNSET
    credential: Annotated[Maybe[CredentialKey], FieldInfo(text="Takes the value from a credential.")] = UNSET
    config_map: Annotated[
        Maybe[ConfigMapKey], FieldInfo(text="Takes the value from a config map.", refers=Reference.CONFIG_MAP)
    ] = UNSET
    pod_field_ref: Annotated[Maybe[PodFieldRef], FieldInfo(text="Takes the value from a field of the pod.")] = UNSET
    description: Annotated[Maybe[UpTo250], FieldInfo(text="What it is for.")] = UNSET
    exclude: ExcludeItemUnset = UNSET


class NodePortInfo(Spec, frozen=True, kw_only=True):
    is_custom_port: Annotated[Given[bool], FieldInfo(text="Whether the submitter chooses the port.")] = UNSET


class ExternalUrlInfo(Spec, frozen=True, kw_only=True):
    is_custom_url: Annotated[Given[bool], FieldInfo(text="Whether the submitter chooses the URL.")] = UNSET
    external_url: Annotated[Maybe[Text], FieldInfo(text="The URL.")] = UNSET


class ServingPortInfo(Spec, frozen=True, kw_only=True):
    protocol: Annotated[Maybe[Literal["grpc", "http"]], FieldInfo(text="The protocol.")] = UNSET


class InternalTool(Spec, frozen=True, kw_only=True):
    tool_type: Annotated[ToolType, FieldInfo(text="Which tool.")]
    connection_type: Annotated[
        Literal["LoadBalancer", "NodePort", "ExternalUrl", "ServingPort"], FieldInfo(text="How the tool is reached.")
    ]
    container_port: Annotated[PortNumber, FieldInfo(text="The port that the tool listens on inside the container.")]
    node_port_info: Annotated[Maybe[NodePortInfo], FieldInfo(text="Options for the connection type NodePort.")] = UNSET
    external_url_info: Annotated[
        Maybe[ExternalUrlInfo], FieldInfo(text="Options for the connection type ExternalUrl.")
    ] = UNSET
    serving_port_info: Annotated[
        Maybe[ServingPortInfo], FieldInfo(text="Options for the connection type ServingPort.")
    ] = UNSET


class ExternalTool(Spec, frozen=True, kw_only=True):
    tool_type: Annotated[Literal["wandb", "comet"], FieldInfo(text="Which tool.")]
    external_url: Annotated[Text, FieldInfo(text="The tool's URL.")]


class ToolConnection(Spec, frozen=True, kw_only=True):
    name: Annotated[Text, FieldInfo(text="The connection's name.")]
    is_external: Annotated[Given[bool], FieldInfo(text="Whether the tool runs outside the container.")] = UNSET
    internal_tool_info: Annotated[Maybe[InternalTool], FieldInfo(text="A tool that runs in the container.")] = UNSET
    external_tool_info: Annotated[Maybe[ExternalTool], FieldInfo(text="A tool that runs outside the container.")] = (
        UNSET
    )


class _EnvironmentOwn(Spec, frozen=True, kw_only=True):
    environment_variables: Annotated[
        Maybe[Annotated[tuple[AssetVariable | None, ...], Meta(max_length=1000)]],
        FieldInfo(text="Environment variables.", key="name"),
    ] = UNSET
    tty: Tty = UNSET
    stdin: Stdin = UNSET
    connections: Annotated[
        Maybe[Annotated[tuple[ToolConnection, ...], Meta(max_length=1000)]],
        FieldInfo(text="The tools that users can open.", key="name"),
    ] = UNSET
    override_uid_gid_in_workspace: Annotated[
        Given[bool], FieldInfo(text="Whether the submitter may choose another user and group.")
    ] = UNSET


_POD = ("image", "image_pull_policy", "command", "args", "working_dir", "create_home_dir", "probes")
_SECURITY = (
    "uid_gid_source",
    "run_as_uid",
    "run_as_gid",
    "supplemental_groups",
    "run_as_non_root",
    "read_only_root_filesystem",
    "capabilities",
    "seccomp_profile_type",
    "allow_privilege_escalation",
    "host_ipc",
    "host_network",
)
_COMPUTE = tuple(name for name in Compute.__struct_fields__ if name != "mig_profile")

EnvironmentAsset = _pick("EnvironmentAssetSpec", (PodFields, _POD), (Security, _SECURITY), base=_EnvironmentOwn)
ComputeAsset = _pick("ComputeAssetSpec", (Compute, _COMPUTE))
HostPathAsset = _pick("HostPathAssetSpec", (HostPath, ("path", "mount_path", "read_only", "mount_propagation")))
NfsAsset = _pick("NfsAssetSpec", (Nfs, ("path", "server", "mount_path", "read_only")))
PvcAsset = _pick(
    "PvcAssetSpec",
    (Pvc, ("path", "existing_pvc", "claim_name", "read_only", "ephemeral", "data_sharing", "claim_info")),
)
ConfigMapAsset = _pick(
    "ConfigMapAssetSpec", (ConfigMapVolume, ("config_map", "mount_path", "sub_path", "default_mode"))
)


class _GitOwn(Spec, frozen=True, kw_only=True):
    password_asset_id: Annotated[
        Maybe[Uuid],
        FieldInfo(text="The password credential; prefer credentialId, which replaces it.", refers=Reference.CREDENTIAL),
    ] = UNSET
    credential_id: Annotated[
        Maybe[Uuid],
        FieldInfo(text="The credential for a private repository.", refers=Reference.CREDENTIAL),
    ] = UNSET


class _S3Own(Spec, frozen=True, kw_only=True):
    access_key_asset_id: Annotated[
        Maybe[Uuid], FieldInfo(text="The credential for a private bucket.", refers=Reference.CREDENTIAL)
    ] = UNSET


class _SecretOwn(Spec, frozen=True, kw_only=True):
    credential_asset_id: Annotated[
        Maybe[Uuid], FieldInfo(text="The credential whose secret is mounted.", refers=Reference.CREDENTIAL)
    ] = UNSET


GitAsset = _pick("GitAssetSpec", (Git, ("repository", "branch", "revision", "path")), base=_GitOwn)
S3Asset = _pick("S3AssetSpec", (S3, ("bucket", "path", "url")), base=_S3Own)
SecretAsset = _pick("SecretAssetSpec", (ConfigMapVolume, ("mount_path", "default_mode")), base=_SecretOwn)

_EXISTING = "An existing secret to use instead of values."
ExistingSecret = Annotated[Maybe[Text], FieldInfo(text=_EXISTING, refers=Reference.SECRET)]


class AccessKeyCredential(Spec, frozen=True, kw_only=True):
    access_key_id: Annotated[Maybe[Text], FieldInfo(text="The id of the access key.")] = UNSET
    secret_access_key: Annotated[Maybe[Text], FieldInfo(text="The secret of the access key.", secret=True)] = UNSET
    existing_secret_name: ExistingSecret = UNSET


class PasswordCredential(Spec, frozen=True, kw_only=True):
    user: Annotated[Maybe[Text], FieldInfo(text="The user name.")] = UNSET
    password: Annotated[Maybe[Text], FieldInfo(text="The password.", secret=True)] = UNSET
    existing_secret_name: ExistingSecret = UNSET


class DockerRegistryCredential(PasswordCredential, frozen=True, kw_only=True):
    url: Annotated[Maybe[Text], FieldInfo(text="The registry's address.")] = UNSET


class KeyValue(Spec, frozen=True, kw_only=True):
    key: Annotated[Maybe[Text], FieldInfo(text="The key.")] = UNSET
    value: Annotated[Maybe[str], FieldInfo(text="Its value.", secret=True)] = UNSET


class GenericSecretCredential(Spec, frozen=True, kw_only=True):
    key_value_pairs: Annotated[
        Maybe[Annotated[tuple[KeyValue, ...], Meta(max_length=1000)]], FieldInfo(text="Keys and values.", key="key")
    ] = UNSET
    existing_secret_name: ExistingSecret = UNSET


class NgcCredential(Spec, frozen=True, kw_only=True, rename={"ngc_api_key": "ngc_api_key"}):
    # The contract's pattern is checked by the caller, because an error message must not repeat the value.
    ngc_api_key: Annotated[Text, FieldInfo(text="The API key for NVIDIA's registry.", secret=True)]
