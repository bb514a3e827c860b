"""Fields of inference that workload YAML has and the REST contract lacks; their surface is `older`."""

from typing import Annotated

from msgspec import UNSET

from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Maybe
from fairlead.model.spec.security import BasicSecurity, DropAllCapabilities
from fairlead.model.spec.storage import S3, DataStorage

ServiceTty = Annotated[
    Maybe[bool],
    FieldInfo(
        text="Gives the process a terminal; needs stdin.",
        default_text="false",
        yaml="tty",
        flags=(FlagDeclaration(name="--tty", short="-t"),),
        surface="older",
    ),
]
ServiceStdin = Annotated[
    Maybe[bool],
    FieldInfo(
        text="Keeps the standard input of the process open; otherwise it is at end of file.",
        default_text="false",
        yaml="stdin",
        flags=(FlagDeclaration(name="--stdin"),),
        surface="older",
    ),
]


class InferenceStorage(DataStorage, frozen=True, kw_only=True):
    """What pods of an inference can mount; buckets only through workload YAML."""

    s3: Annotated[
        Maybe[tuple[S3 | None, ...]],
        FieldInfo(
            text="Buckets of an S3 service.",
            key="name",
            yaml="s3",
            flags=(FlagDeclaration(name="--s3"),),
            surface="older",
        ),
    ] = UNSET


class InferenceSecurity(BasicSecurity, frozen=True, kw_only=True):
    """The security fields of every kind, and those that only workload YAML has."""

    drop_all_capabilities: DropAllCapabilities = UNSET
    host_ipc: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Shares the IPC namespace of the node.",
            default_text="false",
            yaml="hostIpc",
            yaml_also=("hostipc",),
            flags=(FlagDeclaration(name="--host-ipc"),),
            surface="older",
        ),
    ] = UNSET
    host_network: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Shares the network namespace of the node.",
            default_text="false",
            yaml="hostNetwork",
            flags=(FlagDeclaration(name="--host-network"),),
            surface="older",
        ),
    ] = UNSET
