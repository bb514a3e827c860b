"""Persistent volume claims: existing ones, and the properties of new ones."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta

from fairlead.model.records.assets import Reference
from fairlead.model.spec.fields import (
    NO_SUCH_NAME,
    ClaimSizeText,
    ExcludeItem,
    FieldInfo,
    Given,
    Maybe,
    ObjectName63,
    Spec,
    Text63,
    Text4096,
    UpTo10000,
)
from fairlead.model.syntax import Syntax

VolumeMode = Literal["Filesystem", "Block"]

_TELLS_APART = "Identifies this item when lists are merged and when policies lock items."


def mount_point(yaml: str = "", part: str = "path", older: str = "") -> FieldInfo:
    """The path in the container at which a volume appears, whatever its name in YAML and on the command line."""
    return FieldInfo(
        text="The mount path inside the container.",
        mandatory=True,
        yaml=yaml,
        part=part,
        syntax=Syntax.MOUNT_PATH,
        older=older,
    )


InstanceName = Annotated[Maybe[Text63], FieldInfo(text=_TELLS_APART, part="name")]
#: The same, for items whose `name` on the command line is the mounted object.
MountedInstanceName = Annotated[Maybe[Text63], FieldInfo(text=_TELLS_APART, part="instance")]


class AccessModes(Spec, frozen=True, kw_only=True):
    read_write_once: Annotated[
        Maybe[bool],
        FieldInfo(
            text="One node can mount it read-write.",
            default=True,
            origin="contract",
            yaml="readWriteOnce",
            part="accessmode-rwo",
        ),
    ] = UNSET
    read_only_many: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Many nodes can mount it read-only.",
            default=False,
            origin="contract",
            yaml="readOnlyMany",
            part="accessmode-rom",
        ),
    ] = UNSET
    read_write_many: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Many nodes can mount it read-write.",
            default=False,
            origin="contract",
            yaml="readWriteMany",
            part="accessmode-rwm",
        ),
    ] = UNSET


class AddedAttribute(Spec, frozen=True, kw_only=True):
    key: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=63,
                pattern=r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z",
                extra_json_schema={"pattern": "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"},
                extra={
                    "rule": "use letters, digits, hyphens, underscores and dots, beginning and ending with a letter "
                    "or digit, such as tier"
                },
            ),
        ],
        FieldInfo(text="The annotation's key.", mandatory=True),
    ]
    value: Annotated[Given[UpTo10000], FieldInfo(text="The annotation's value.")] = UNSET


class ClaimInfo(Spec, frozen=True, kw_only=True):
    size: Annotated[
        Maybe[ClaimSizeText],
        FieldInfo(
            text="The size of the new claim. Mandatory unless the claim exists.",
            unit="bytes, as a quantity such as 1G",
            yaml="size",
            part="size",
        ),
    ] = UNSET
    storage_class: Annotated[
        Maybe[ObjectName63],
        FieldInfo(
            text="The storage class that provides it.",
            default_text="the installation's default class",
            yaml="storageClass",
            part="storageclass",
            refers=Reference.STORAGE_CLASS,
            older=NO_SUCH_NAME,
        ),
    ] = UNSET
    access_modes: Annotated[Maybe[AccessModes], FieldInfo(text="How nodes can mount the new claim.")] = UNSET
    volume_mode: Annotated[
        Maybe[VolumeMode],
        FieldInfo(
            text="Whether the claim is a file system or a raw block device.",
            default="Filesystem",
            origin="prose",
            part="volume-mode",
        ),
    ] = UNSET
    added_attr_values: Annotated[
        Given[Annotated[tuple[AddedAttribute, ...], Meta(max_length=1000)]],
        FieldInfo(text="Annotations of the new claim, for its storage class.", part="attributes", unique=("key",)),
    ] = UNSET


class Pvc(Spec, frozen=True, kw_only=True):
    name: InstanceName = UNSET
    path: Annotated[
        Maybe[Text4096],
        mount_point(yaml="path"),
    ] = UNSET
    existing_pvc: Annotated[
        Maybe[bool],
        FieldInfo(
            text="True mounts an existing claim. Otherwise the claim is created if there is none of that name.",
            default=False,
            origin="contract",
            yaml="existingPvc",
            part="existing",
        ),
    ] = UNSET
    claim_name: Annotated[
        Maybe[Text63],
        FieldInfo(
            text="The claim's name. Other workloads can mount the claim by this name.",
            default_text="made from the workload's name",
            yaml="claimName",
            part="claimname",
            syntax=Syntax.OBJECT_NAME,
            older=NO_SUCH_NAME,
            refers=Reference.CLAIM,
            created_unless="existing_pvc",
        ),
    ] = UNSET
    read_only: Annotated[
        Maybe[bool],
        FieldInfo(text="Mounts it read-only.", default=False, origin="contract", yaml="readOnly", part="ro"),
    ] = UNSET
    ephemeral: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Deletes the claim whenever the workload stops.",
            default=False,
            origin="contract",
            yaml="ephemeral",
            part="ephemeral",
        ),
    ] = UNSET
    data_sharing: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Shares the claim's data with all projects of the scope.",
            default=False,
            origin="contract",
            part="data-sharing",
        ),
    ] = UNSET
    claim_info: Annotated[
        Maybe[ClaimInfo],
        FieldInfo(text="The properties of a new claim; not allowed for an existing claim.", ignored_if="existing_pvc"),
    ] = UNSET
    exclude: ExcludeItem = UNSET
