"""What is mounted into a pod: claims, repositories, buckets, host paths, config maps, secrets, scratch space.

`BasicStorage` is what every kind can mount, `DataStorage` adds what inference can, `Storage` what trainings and
workspaces can. Items are identified by `name`, data volumes by `id`.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta

from fairlead.model.records.assets import Reference
from fairlead.model.spec.claims import InstanceName, MountedInstanceName, Pvc, mount_point
from fairlead.model.spec.fields import (
    NO_SUCH_NAME,
    ExcludeItem,
    FieldInfo,
    FlagDeclaration,
    Given,
    Maybe,
    ObjectName,
    ObjectName253,
    SizeText,
    Spec,
    Text,
    Text63,
    Text253,
    Text2048,
    Text4096,
    UpTo4096,
    Uuid,
)
from fairlead.model.syntax import Syntax

MountPropagation = Literal["None", "HostToContainer"]
GitAuthentication = Literal["password", "ssh-key"]

_NOT_MOUNTED = "it cannot be mounted there, so the workload fails at its start"
MountPath = Annotated[
    Maybe[Text4096],
    mount_point(yaml="mountPath", older=_NOT_MOUNTED),
]
_FILE_MODE = Meta(
    min_length=4,
    max_length=4,
    pattern="0[0-7]{3}",
    extra={"rule": "give four octal digits that begin with 0, such as 0644"},
)
FileMode = Annotated[
    Maybe[Annotated[str, _FILE_MODE]],
    FieldInfo(
        text="The permissions of the files, four octal digits.",
        default="0644",
        origin="kubernetes",
        part="default-mode",
    ),
]


class ConfigMapVolume(Spec, frozen=True, kw_only=True):
    name: MountedInstanceName = UNSET
    config_map: Annotated[
        Maybe[ObjectName253],
        FieldInfo(
            text="The config map's name.",
            mandatory=True,
            yaml="name",
            part="name",
            refers=Reference.CONFIG_MAP,
            key_member="sub_path",
            is_live=True,
            older=NO_SUCH_NAME,
        ),
    ] = UNSET
    mount_path: MountPath = UNSET
    sub_path: Annotated[
        Maybe[Text4096],
        FieldInfo(
            text="The single key to mount instead of all keys.", yaml="subPath", part="subpath", syntax=Syntax.SUB_PATH
        ),
    ] = UNSET
    default_mode: FileMode = UNSET
    exclude: ExcludeItem = UNSET


class SecretVolume(Spec, frozen=True, kw_only=True):
    name: MountedInstanceName = UNSET
    secret: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The secret's name.",
            mandatory=True,
            part="name",
            refers=Reference.SECRET,
            is_live=True,
            syntax=Syntax.OBJECT_NAME,
            older=NO_SUCH_NAME,
        ),
    ] = UNSET
    mount_path: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The directory in which the keys of the secret appear as files.",
            mandatory=True,
            part="path",
            syntax=Syntax.MOUNT_PATH,
            older=_NOT_MOUNTED,
        ),
    ] = UNSET
    default_mode: FileMode = UNSET
    exclude: ExcludeItem = UNSET


class EmptyDir(Spec, frozen=True, kw_only=True):
    name: InstanceName = UNSET
    path: Annotated[
        Maybe[Text4096],
        mount_point(),
    ] = UNSET
    medium: Annotated[
        Maybe[Text63],
        FieldInfo(text="Memory to keep the files in memory.", default_text="the node's disk", part="medium"),
    ] = UNSET
    size_limit: Annotated[
        Maybe[SizeText],
        FieldInfo(
            text="The maximum size.",
            unit="bytes, as a quantity such as 500Mi",
            default_text="no limit",
            part="size-limit",
        ),
    ] = UNSET
    exclude: ExcludeItem = UNSET


class DataVolumeMount(Spec, frozen=True, kw_only=True):
    id: Annotated[
        Maybe[Uuid],
        FieldInfo(text="The data volume's id.", mandatory=True, part="id", refers=Reference.DATA_VOLUME),
    ] = UNSET
    mount_path: Annotated[
        Maybe[UpTo4096],
        mount_point(),
    ] = UNSET
    exclude: ExcludeItem = UNSET


class GitSecretRef(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Given[Text],
        FieldInfo(
            text="The secret that holds the credentials.", yaml="secretName", part="secret", refers=Reference.SECRET
        ),
    ] = UNSET
    authentication_method: Annotated[
        Given[GitAuthentication],
        FieldInfo(
            text="How to sign in: user and password, or an SSH key.",
            default="password",
            origin="ours",
            part="authentication",
        ),
    ] = UNSET
    secret_key_of_user: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The key in the secret that holds the user name.",
            default="User",
            origin="prose",
            yaml="username",
            part="user-key",
            syntax=Syntax.OBJECT_KEY,
        ),
    ] = UNSET
    secret_key_of_password: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The key in the secret that holds the password.",
            default="Password",
            origin="prose",
            yaml="password",
            part="password-key",
            syntax=Syntax.OBJECT_KEY,
        ),
    ] = UNSET


class Git(Spec, frozen=True, kw_only=True):
    name: InstanceName = UNSET
    repository: Annotated[
        Maybe[Text2048],
        FieldInfo(
            text="The repository's address.",
            mandatory=True,
            yaml="repository",
            part="repository",
            syntax=Syntax.REPOSITORY,
        ),
    ] = UNSET
    branch: Annotated[
        Maybe[Text63],
        FieldInfo(
            text="The branch.",
            default_text="the default branch of the repository",
            yaml="branch",
            part="branch",
            syntax=Syntax.GIT_BRANCH,
        ),
    ] = UNSET
    revision: Annotated[
        Maybe[Text63],
        FieldInfo(
            text="The revision to check out.",
            default_text="the newest revision of the branch",
            yaml="rev",
            yaml_also=("revision",),
            part="rev",
            syntax=Syntax.GIT_REVISION,
        ),
    ] = UNSET
    path: Annotated[
        Maybe[Text4096],
        FieldInfo(
            text="The path of the working copy inside the container.",
            mandatory=True,
            yaml="directory",
            yaml_also=("path",),
            part="path",
            syntax=Syntax.MOUNT_PATH,
        ),
    ] = UNSET
    password_secret: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The secret that holds the user name and password; prefer secretRef, which replaces it.",
            part="password-secret",
            refers=Reference.SECRET,
            syntax=Syntax.OBJECT_NAME,
            older=NO_SUCH_NAME,
        ),
    ] = UNSET
    secret_key_of_user: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The key in passwordSecret that holds the user name.",
            default="User",
            origin="prose",
            part="password-secret-user",
            syntax=Syntax.OBJECT_KEY,
        ),
    ] = UNSET
    secret_key_of_password: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The key in passwordSecret that holds the password.",
            default="Password",
            origin="prose",
            part="password-secret-password",
            syntax=Syntax.OBJECT_KEY,
        ),
    ] = UNSET
    secret_ref: Annotated[Maybe[GitSecretRef], FieldInfo(text="The secret for a private repository.")] = UNSET
    exclude: ExcludeItem = UNSET


#: For storage that outlives every workload: read-only unless the spec says otherwise.
ReadOnlyUnlessSaid = Annotated[
    Maybe[bool],
    FieldInfo(
        text="Mounts it read-only.",
        default=True,
        origin="contract",
        yaml="readOnly",
        part="readwrite",
        part_constant=False,
    ),
]


class HostPath(Spec, frozen=True, kw_only=True):
    name: InstanceName = UNSET
    path: Annotated[
        Maybe[Text4096],
        FieldInfo(text="The path on the node.", mandatory=True, yaml="path", part="path", syntax=Syntax.ABSOLUTE_PATH),
    ] = UNSET
    mount_path: Annotated[
        Maybe[Text4096],
        mount_point(yaml="mountPath", part="mount"),
    ] = UNSET
    read_only: ReadOnlyUnlessSaid = UNSET
    mount_propagation: Annotated[
        Maybe[MountPropagation],
        FieldInfo(
            text="Whether later mounts below the node's path appear in the container; the same for all host paths.",
            default="None",
            origin="kubernetes",
            yaml="mountPropagation",
            part="mount-propagation",
        ),
    ] = UNSET
    exclude: ExcludeItem = UNSET


class Nfs(Spec, frozen=True, kw_only=True):
    name: InstanceName = UNSET
    path: Annotated[
        Maybe[Text4096],
        FieldInfo(
            text="The exported path.", mandatory=True, yaml="sourcePath", part="path", syntax=Syntax.ABSOLUTE_PATH
        ),
    ] = UNSET
    server: Annotated[
        Maybe[Text253],
        FieldInfo(
            text="The server's name or address.",
            mandatory=True,
            yaml="nfsServer",
            part="server",
            syntax=Syntax.HOST,
        ),
    ] = UNSET
    mount_path: Annotated[
        Maybe[Text4096],
        mount_point(yaml="targetPath", part="mountpath"),
    ] = UNSET
    read_only: ReadOnlyUnlessSaid = UNSET
    exclude: ExcludeItem = UNSET


class S3(Spec, frozen=True, kw_only=True):
    name: InstanceName = UNSET
    bucket: Annotated[
        Maybe[Text],
        FieldInfo(text="The bucket.", mandatory=True, yaml="bucket", part="bucket", syntax=Syntax.BUCKET),
    ] = UNSET
    path: Annotated[
        Maybe[Text],
        mount_point(yaml="path"),
    ] = UNSET
    url: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The address of the S3 service.",
            default_text="Amazon's",
            yaml="url",
            part="url",
            syntax=Syntax.WEB_URL,
        ),
    ] = UNSET
    access_key_secret: Annotated[
        Maybe[ObjectName],
        FieldInfo(
            text="The secret for a private bucket.",
            yaml="secretName",
            part="accesskey",
            refers=Reference.SECRET,
            older=NO_SUCH_NAME,
        ),
    ] = UNSET
    secret_key_of_access_key_id: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The key in the secret that holds the access key id.",
            default="AccessKeyId",
            origin="prose",
            yaml="key",
            part="id-key",
            syntax=Syntax.OBJECT_KEY,
        ),
    ] = UNSET
    secret_key_of_secret_key: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The key in the secret that holds the secret access key.",
            default="SecretKey",
            origin="prose",
            yaml="secret",
            part="secret-key",
            syntax=Syntax.OBJECT_KEY,
        ),
    ] = UNSET
    exclude: ExcludeItem = UNSET


class BasicStorage(Spec, frozen=True, kw_only=True):
    """What pods of every kind can mount."""

    pvc: Annotated[
        Maybe[Annotated[tuple[Pvc | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Persistent volume claims, existing ones and new ones.",
            key="name",
            yaml="pvcs",
            flags=(
                FlagDeclaration(
                    name="--existing-pvc",
                    preset={"existingPvc": True},
                    parts=("name", "claimName", "path", "readOnly", "ephemeral", "dataSharing", "exclude"),
                ),
                FlagDeclaration(name="--new-pvc", preset={"existingPvc": False}),
            ),
        ),
    ] = UNSET
    config_map_volume: Annotated[
        Maybe[Annotated[tuple[ConfigMapVolume | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Config maps mounted as files.",
            key="name",
            yaml="configMapVolumes",
            yaml_also=("configMapVolume",),
            flags=(FlagDeclaration(name="--configmap-map-volume", aliases=("--configmap-volume",)),),
        ),
    ] = UNSET
    secret_volume: Annotated[
        Maybe[tuple[SecretVolume | None, ...]],
        FieldInfo(text="Secrets mounted as files.", key="name", flags=(FlagDeclaration(name="--secret-volume"),)),
    ] = UNSET
    empty_dir_volume: Annotated[
        Maybe[Annotated[tuple[EmptyDir | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Scratch space that lives as long as the pod.",
            key="name",
            flags=(FlagDeclaration(name="--empty-dir-volume"),),
        ),
    ] = UNSET


class DataStorage(BasicStorage, frozen=True, kw_only=True):
    """What pods of one container each can mount beyond `BasicStorage`."""

    data_volume: Annotated[
        Maybe[Annotated[tuple[DataVolumeMount | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Data volumes shared by other projects.",
            key="id",
            flags=(FlagDeclaration(name="--datavolume", aliases=("--data-volume",)),),
        ),
    ] = UNSET
    git: Annotated[
        Maybe[Annotated[tuple[Git | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Git repositories that are cloned before the start.",
            key="name",
            yaml="gitSync",
            flags=(FlagDeclaration(name="--git-sync"),),
        ),
    ] = UNSET
    host_path: Annotated[
        Maybe[Annotated[tuple[HostPath | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Directories of the node.", key="name", yaml="volumes", flags=(FlagDeclaration(name="--host-path"),)
        ),
    ] = UNSET
    nfs: Annotated[
        Maybe[Annotated[tuple[Nfs | None, ...], Meta(max_length=1000)]],
        FieldInfo(text="Exports of NFS servers.", key="name", yaml="nfs", flags=(FlagDeclaration(name="--nfs"),)),
    ] = UNSET


class Storage(DataStorage, frozen=True, kw_only=True):
    """What pods of trainings and workspaces can mount beyond `DataStorage`."""

    s3: Annotated[
        Maybe[tuple[S3 | None, ...]],
        FieldInfo(text="Buckets of an S3 service.", key="name", yaml="s3", flags=(FlagDeclaration(name="--s3"),)),
    ] = UNSET
