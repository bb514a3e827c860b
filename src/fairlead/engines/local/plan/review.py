"""Which fields of a pod this engine refuses before its start, and which have less effect here than on a cluster.

`control` asks at submission: a refused field fails the workload before its start, a remark becomes a condition. Fields
that are not named here have their effect elsewhere (scheduling, records), or have it on this engine.
"""

from collections.abc import Callable, Collection, Iterator
from typing import ParamSpec

from fairlead.engines.base import NO_ISOLATION, Review
from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan import fetches, identity, limits
from fairlead.engines.local.plan.container import ARCHIVE, IDS, RUNTIMES
from fairlead.engines.local.plan.identity import ServerRights
from fairlead.engines.local.plan.volumes import NO_NFS, VolumeContext, check_runtime_can_mount, check_target
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import (
    BucketMount,
    ClaimMount,
    ConfigMapMount,
    EmptyDirMount,
    GitMount,
    HostPathMount,
    Mount,
    NfsMount,
    SecretMount,
)
from fairlead.model.pods.podset import PodContainer
from fairlead.model.records.assets import Reference
from fairlead.model.spec.references import pod_references

P = ParamSpec("P")
#: (path of the field, why)
Note = tuple[str, str]
#: (what is refused, what has less effect here) of a container's storage.
ReviewStorage = Callable[[PodContainer], tuple[list[Note], list[Note]]]


def review(container: PodContainer, rights: ServerRights, review_storage: ReviewStorage) -> Review:
    """What is said of a pod before its start, given what this server can do and what its operator allows."""
    security = container.fields.security
    try:
        runtime = plan_container.choose(container, rights.settings)
    except Refused as error:
        return Review(refused=((f"annotations[{plan_container.ANNOTATION}]", str(error)),))
    in_container = runtime != plan_container.HOST
    may_use_secrets = rights.settings.is_personal or rights.isolates or in_container
    storage_refused, storage_remarks = review_storage(container)
    if in_container:
        refused = [
            *identity.find_refused_fields(security, rights),
            *find_refused_in_container(runtime, container, rights),
        ]
        remarks = [
            *_gpu_shares(container),
            *_timed_tolerations(container),
            *find_weaker_in_container(container, rights),
            *security.ids_without_effect,
        ]
    else:
        refused = [
            *find_refused_on_host(container, may_use_secrets),
            *identity.find_refused_fields(security, rights),
        ]
        remarks = [
            *find_weaker_on_host(container),
            *security.ids_without_effect,
            *limits.remarks(container, rights.means),
        ]
    return Review(
        refused=(*refused, *storage_refused),
        forbidden=tuple(find_forbidden_storage(container, rights.settings)),
        advisory=(*storage_remarks, *remarks),
        isolation=name_isolation(runtime, rights),
    )


def name_isolation(runtime: str, rights: ServerRights) -> tuple[str, str]:
    """How a pod of that runtime is isolated from this machine: the name, and what it means."""
    if runtime != plan_container.HOST:
        root = "; root in it has no rights on this machine" if plan_container.is_mapped(runtime, rights) else ""
        return "Container", f"it runs in a container of {runtime}{root}"
    if rights.isolates:
        name, more = ("Namespaces", "mount") if rights.has_root else ("UserNamespaces", "user, mount")
        account = (
            ", and where its account may write if it runs as an account of this machine" if rights.has_root else ""
        )
        return name, f"{more} and process namespaces: it can write only to its volumes, home and /tmp{account}"
    if rights.is_shared:
        return NO_ISOLATION, "the operator allows this (--allow no-isolation): it sees this machine as its user does"
    return NO_ISOLATION, "on a personal server a job sees the whole machine, as its owner does"


# On the host runtime


def find_refused_on_host(container: PodContainer, may_use_secrets: bool = True) -> tuple[Note, ...]:
    """Fields that this engine cannot provide and must not ignore, each with the reason.

    Secrets may be used if the server is its owner's alone, or if pods are isolated from each other.
    """
    return () if may_use_secrets else tuple(_secrets(container))


def _secrets(container: PodContainer) -> Iterator[Note]:
    for use in pod_references(container):
        # No image is pulled on the host runtime, so a pull secret is not handed out.
        is_secret = use.reference in (Reference.SECRET, Reference.USER_CREDENTIAL)
        if is_secret and not use.path.startswith("imagePull"):
            yield use.path, f"pods are not isolated from each other here, so all of them could read '{use.name}'"


def find_weaker_on_host(container: PodContainer) -> tuple[Note, ...]:
    """Fields that are recorded and counted but not enforced on this engine, each with what happens instead."""
    notes: list[Note] = []
    if container.image:
        notes.append(("image", "not used: the process uses this machine's own files"))
    fields = container.fields
    pulling = (("imagePullPolicy", fields.image_pull_policy), ("imagePullSecrets", fields.image_pull_secrets))
    notes += [(name, "no image is pulled on the host runtime") for name, is_given in pulling if is_given]
    return (*notes, *_gpu_shares(container), *_timed_tolerations(container))


def _timed_tolerations(container: PodContainer) -> list[Note]:
    given = enumerate(container.fields.tolerations)
    timed = [toleration.name or number for number, toleration in given if toleration.seconds is not None]
    return [
        (f"tolerations[{name}].seconds", "it has no effect: nodes of this engine get no taints while pods run")
        for name in timed
    ]


def _gpu_shares(container: PodContainer) -> list[Note]:
    compute = container.fields.compute
    shares = (
        ("gpuPortionRequest", compute.gpu_portion_request),
        ("gpuPortionLimit", compute.gpu_portion_limit),
        ("gpuMemoryRequest", compute.gpu_memory_request),
        ("gpuMemoryLimit", compute.gpu_memory_limit),
    )
    why = "nothing enforces the share: the process must keep to it"
    return [(f"compute.{name}", why) for name, is_given in shares if is_given]


# In a container


def find_refused_in_container(name: str, container: PodContainer, rights: ServerRights) -> Iterator[Note]:
    """Fields that cannot be provided in a container here, each with the reason."""
    security = container.fields.security
    is_custom = security.uid_gid_source == "custom"
    if security.run_as_non_root and not is_custom:
        yield "security.runAsNonRoot", "the user of the image is not known before the start; give runAsUid"
    if plan_container.is_mapped(name, rights):
        for member, number in (("runAsUid", security.run_as_uid), ("runAsGid", security.run_as_gid)):
            if is_custom and (number or 0) >= IDS:
                yield f"security.{member}", f"ids in containers are from 0 to {IDS - 1} on this server"
    elif rights.is_shared and rights.has_root and not rights.settings.allowed.root_user and not is_custom:
        why = f"{name} would run the image as this machine's root; give runAsUid, use podman, or --allow root-user"
        yield "security.uidGidSource", why
    yield from _refuse_image(name, container, rights)


def _refuse_image(name: str, container: PodContainer, rights: ServerRights) -> Iterator[Note]:
    archive = ARCHIVE.match(container.image)
    if not container.image:
        yield "image", "is missing; a container needs an image"
    elif archive and not RUNTIMES[name].is_direct and not archive[1].endswith("-archive"):
        yield "image", f"{name} loads archives only: docker-archive:/path or oci-archive:/path"
    elif archive and rights.is_shared and not rights.settings.allowed.has_path(archive["path"]):
        yield "image", "the archive is not in a folder that --allow host-path names"


def find_weaker_in_container(container: PodContainer, rights: ServerRights) -> Iterator[Note]:
    """Fields that have less effect in a container here."""
    compute = container.fields.compute
    if compute.gpu_devices_request:
        why = "the runtime must be configured to pass these devices to containers"
        yield "compute.gpuDevicesRequest", why
    if not rights.has_root:
        for member, limit in (("cpuCoreLimit", compute.cpu_core_limit), ("cpuMemoryLimit", compute.cpu_memory_limit)):
            if limit is not None:
                why = "without root, the runtime enforces it only if version 2 control groups are delegated to it"
                yield f"compute.{member}", why


# Storage


class _AnySecret(dict[str, str]):
    """Stands for a secret that exists: what it lacks is said at the start."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> str:
        return ""


class _AnySecrets(dict[str, dict[str, str]]):
    """Stands for all secrets."""

    def get(self, key: str, default: object = None) -> _AnySecret:
        return _AnySecret()


def find_refused_storage(container: PodContainer, ground: VolumeContext, classes: Collection[str]) -> list[Note]:
    """Every storage field that this server cannot or must not provide, with the reason."""
    notes: list[Note] = []
    owners: dict[str, str] = {}
    for field, mount in container.fields.storage.mounts():
        notes += _refused_by(check_target, mount.target, _target_field(field, mount))
        owner = owners.setdefault(mount.target.rstrip("/"), field)
        if owner != field:
            notes.append((field, f"'{mount.target}' is also the mount path of {owner}; give each its own"))
        notes += _refuse_mount(mount, field, ground, classes)
        if ground.runtime:
            notes += _refused_by(check_runtime_can_mount, _kind_of(mount), mount.target, field, ground)
    return notes


def find_forbidden_storage(container: PodContainer, settings: LocalSettings) -> list[Note]:
    """Mounts over what belongs to the kernel, such as /dev, and repositories by protocols that are not allowed."""
    notes: list[Note] = []
    for field, mount in container.fields.storage.mounts():
        notes += _refused_by(check_target, mount.target, _target_field(field, mount))
        if isinstance(mount, GitMount):
            notes += _refused_by(fetches.check_protocol, mount.repository, field, settings)
    return notes


def _target_field(field: str, mount: Mount) -> str:
    """The member of a volume that says where it is mounted."""
    is_plain = isinstance(mount, EmptyDirMount | ClaimMount | GitMount | BucketMount)
    return f"{field}.path" if is_plain else f"{field}.mountPath"


def _kind_of(mount: Mount) -> str:
    """What the volume is made of, for what runtimes can mount."""
    match mount:
        case HostPathMount():
            return "host"
        case NfsMount():
            return "nfs"
        case SecretMount() | ConfigMapMount():
            return "files"
        case EmptyDirMount() if mount.medium == "Memory":
            return "memory"
    return "folder"


def _refuse_mount(mount: Mount, field: str, ground: VolumeContext, classes: Collection[str]) -> list[Note]:
    settings = ground.settings
    match mount:
        case EmptyDirMount() if mount.medium not in (None, "", "Memory"):
            why = f"'{mount.medium}' is not a medium; leave it out for disk, or give Memory"
            return [(f"{field}.medium", why)]
        case HostPathMount() if not settings.is_personal and not settings.allowed.has_path(mount.path):
            return [(f"{field}.path", settings.allowed.path_refusal(mount.path))]
        case NfsMount() if not ground.has_nfs:
            return [(field, NO_NFS)]
        case ClaimMount():
            return _refuse_claim(mount, field, classes)
        case GitMount():
            return _refused_by(fetches.render_git, mount, field, _AnySecrets(), settings)
        case BucketMount():
            return _refused_by(fetches.render_s3, mount, field, "", _AnySecrets(), settings)
    return []


def _refuse_claim(mount: ClaimMount, field: str, classes: Collection[str]) -> list[Note]:
    wanted = mount.claim_info
    if wanted is None:
        return []
    notes = []
    if wanted.volume_mode == "Block":
        why = "the local engine has no raw devices; leave it out for a file system"
        notes.append((f"{field}.claimInfo.volumeMode", why))
    if wanted.storage_class and wanted.storage_class not in classes:
        why = f"there is no storage class '{wanted.storage_class}'; there is {', '.join(classes)}"
        notes.append((f"{field}.claimInfo.storageClass", why))
    return notes


def _refused_by(check: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> list[Note]:
    """The refusal that a check raises, as (field, why)."""
    try:
        check(*args, **kwargs)
    except Refused as refused:
        field, _, why = str(refused).partition(": ")
        return [(field, why)]
    return []


def find_weaker_storage(container: PodContainer, ground: VolumeContext) -> list[Note]:
    """Storage fields that have less effect here than on a cluster."""
    notes = []
    for field, mount in container.fields.storage.mounts():
        match mount:
            case ClaimMount():
                if mount.data_sharing:
                    why = "claims belong to one project here; share the data as a data volume"
                    notes.append((f"{field}.dataSharing", why))
                if mount.claim_info is not None and mount.claim_info.size and not ground.has_images:
                    notes.append((f"{field}.claimInfo.size", _watched(ground)))
            case EmptyDirMount() if mount.size_limit and mount.medium != "Memory" and not ground.has_images:
                notes.append((f"{field}.sizeLimit", _watched(ground)))
    is_large = container.fields.compute.large_shm_request
    if is_large and ground.settings.is_personal and not ground.runtime:
        notes.append(("compute.largeShmRequest", "pods use the shared memory of this machine, with its size"))
    return notes


def _watched(ground: VolumeContext) -> str:
    seconds = f"{ground.settings.gauge_seconds:g}"
    return f"checked every {seconds} s; a pod over it is evicted. A hard limit needs root and mke2fs"
