"""From a pod's storage fields to the volumes that its process mounts: where, from what, how large, what is fetched.

Called by `storage.py`. What cannot be provided is refused with the field's name; nothing is left out silently. The
pod's process mounts and fetches by it (`storage/sources.py`, `storage/fetching.py`).
"""

import posixpath
from collections.abc import Callable, Iterable, Mapping

import msgspec

from fairlead.engines.local.launch_order import BucketFetch, Fetches, Files, GitFetch, Volume, WatchedFolder
from fairlead.engines.local.plan import fetches
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import (
    BucketMount,
    ClaimMount,
    ClaimRequest,
    ConfigMapMount,
    ContainerStorage,
    EmptyDirMount,
    GitMount,
    HostPathMount,
    NfsMount,
    SecretMount,
    SharedDataMount,
)
from fairlead.model.pods.podset import PodSpec
from fairlead.model.pods.supplies import ClaimSupply, Supplies
from fairlead.model.quantity import whole

#: Places that belong to the kernel; only shared memory may be replaced.
_KERNEL = ("/proc", "/sys", "/dev")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the place itself
#: What containers have as shared memory unless they ask for more.
SHARED_MEMORY_BYTES = 64 * 1024 * 1024
#: A home of its own beside the owner's, which a personal pod still sees.
PERSONAL_HOME = "/home/runai-home"
TEMPORARY = "/tmp"  # noqa: S108 - the very place that becomes private


class VolumeContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a server brings to the volumes of one attempt."""

    settings: LocalSettings
    #: The attempt's own folder, gone with it.
    private: str
    #: From a claim's id to its folder.
    claim_folder: Callable[[str, str], str]
    #: Whether file systems in files can be mounted, and whether a claim is already kept as a plain folder.
    has_images: bool
    is_plain: Callable[[str], bool]
    has_nfs: bool = False
    #: From a server's name to its address; raises OSError.
    look_up: Callable[[str], str]
    #: The container runtime that the pod runs in; empty for the machine itself.
    runtime: str = ""
    #: Whether the pod's process mounts its volumes itself, or prepares them for its runtime in a view that it shares.
    mounts: bool = True


class Volumes(msgspec.Struct, frozen=True, kw_only=True):
    """The volumes of one attempt, and what else was loaded for it."""

    mounts: tuple[Volume, ...] = ()
    #: What is fetched into volumes before the start; buckets also get changes back after the end.
    fetches: Fetches = Fetches()
    #: Folders whose size is checked, because no file system limits it.
    watched: tuple[WatchedFolder, ...] = ()
    #: Claims that it mounts.
    claims: tuple[ClaimSupply, ...] = ()
    #: What lets it in at registries of images, as they are kept.
    registries: tuple[str, ...] = ()
    #: The environment of its caller, and the caller's input in base64.
    caller_variables: Mapping[str, str] = {}
    caller_input: str = ""


def plan_volumes(pod: PodSpec, supplies: Supplies, ground: VolumeContext) -> Volumes:
    """Every volume of a pod; raises Refused for the first that cannot be provided."""
    planner = _Planner(pod, supplies, ground)
    planner.plan_storage(pod.container.fields.storage)
    planner.plan_home()
    planner.plan_shared_memory()
    _refuse_twice(planner.mounts)
    return Volumes(
        mounts=tuple(planner.mounts),
        fetches=Fetches(planner.repositories, planner.buckets),
        watched=tuple(planner.watched),
        claims=tuple(planner.claims),
        registries=supplies.registries,
        caller_variables=supplies.caller_variables,
        caller_input=supplies.caller_input,
    )


class _Planner:
    def __init__(self, pod: PodSpec, supplies: Supplies, ground: VolumeContext) -> None:
        self._pod = pod
        self._supplies = supplies
        self._ground = ground
        self.mounts: list[Volume] = []
        self.repositories: list[GitFetch] = []
        self.buckets: list[BucketFetch] = []
        self.watched: list[WatchedFolder] = []
        self.claims: list[ClaimSupply] = []

    def plan_storage(self, storage: ContainerStorage) -> None:
        number = 0
        for field, mount in storage.mounts():
            match mount:
                case EmptyDirMount():
                    self._empty_dir(mount, field)
                case HostPathMount():
                    self._host_path(mount, field)
                case NfsMount():
                    self._nfs(mount, field)
                case ClaimMount():
                    self._claim(mount, field, number)
                    number += 1
                case SharedDataMount():
                    self._data_volume(mount, field)
                case ConfigMapMount():
                    self._config_map(mount, field)
                case SecretMount():
                    self._secret(mount, field)
                case GitMount():
                    self._git(mount, field)
                case BucketMount():
                    self._s3(mount, field)

    def _add(self, volume: Volume) -> None:
        volume = volume._replace(at=check_target(volume.at, volume.field))
        made_of = "files" if volume.files else volume.kind
        check_runtime_can_mount(made_of, volume.at, volume.field, self._ground)
        self.mounts.append(volume)

    def _scratch(self) -> str:
        """A place of the attempt's own for one volume."""
        return f"{self._ground.private}/volumes/{len(self.mounts)}"

    def _empty_dir(self, mount: EmptyDirMount, field: str) -> None:
        size = whole(mount.size_limit) if mount.size_limit else None
        if mount.medium == "Memory":
            self._add(Volume("memory", mount.path, field, size=size, mode=0o777))
        elif mount.medium:
            raise Refused(f"{field}.medium: '{mount.medium}' is not a medium; leave it out for disk, or give Memory")
        elif size is None:
            self._add(Volume("folder", mount.path, field, source=self._scratch(), mode=0o777))
        else:
            self._sized(mount.path, field, self._scratch(), size, read_only=False, durable=False)

    def _sized(self, at: str, field: str, place: str, size: int, *, read_only: bool, durable: bool) -> None:
        """Limited by a file system of that size if one can be mounted, otherwise checked."""
        volume = Volume("folder", at, field, source=f"{place}/data", mode=0o777, read_only=read_only)
        if self._ground.has_images and not self._ground.is_plain(place):
            self._add(volume._replace(kind="image", source=f"{place}/image", size=size, durable=durable))
            return
        self._add(volume)
        if not read_only:
            self.watched.append(WatchedFolder(f"{place}/data", size, field))

    def _host_path(self, mount: HostPathMount, field: str) -> None:
        settings = self._ground.settings
        path = posixpath.normpath(mount.path)
        if not path.startswith("/") or ".." in mount.path.split("/"):
            raise Refused(f"{field}.path: '{mount.path}' is not an absolute path without '..'")
        within = ""
        if not settings.is_personal:
            allowed_folders = [folder.rstrip("/") or "/" for folder in settings.allowed.host_paths]
            allowed = [
                folder for folder in allowed_folders if path == folder or path.startswith(folder.rstrip("/") + "/")
            ]
            if not allowed:
                raise Refused(f"{field}.path: {settings.allowed.path_refusal(path)}")
            within = max(allowed, key=len)
        follows = mount.mount_propagation == "HostToContainer"
        volume = Volume("host", mount.mount_path, field, source=path, within=within, follows=follows)
        self._add(volume._replace(read_only=mount.read_only))

    def _nfs(self, mount: NfsMount, field: str) -> None:
        if not self._ground.has_nfs:
            raise Refused(f"{field}: {NO_NFS}")
        try:
            address = self._ground.look_up(mount.server)
        except OSError as error:
            raise Refused(f"{field}.server: '{mount.server}' has no address: {error.strerror}") from error
        source = f"{mount.server}:{mount.path}"
        volume = Volume("nfs", mount.mount_path, field, source=source, address=address, read_only=mount.read_only)
        self._add(volume)

    def _claim(self, mount: ClaimMount, field: str, number: int) -> None:
        if mount.ephemeral:
            wanted = mount.claim_info or ClaimRequest()
            claim = ClaimSupply(
                id=f"{self._pod.workload_id}.{number}",
                name=mount.claim_name or f"{self._pod.workload_name}-{number}",
                size_bytes=whole(wanted.size) if wanted.size else None,
                storage_class=wanted.storage_class or "",
                workload_id=self._pod.workload_id,
            )
        elif number in self._supplies.claims:
            claim = self._supplies.claims[number]
        else:
            raise Refused(f"{field}: there is no claim '{mount.claim_name or ''}'")
        self._mount_claim(claim, mount.path, field, read_only=mount.read_only or claim.read_only)

    def _data_volume(self, mount: SharedDataMount, field: str) -> None:
        claim = self._supplies.data_volumes.get(mount.id.lower())
        if claim is None:
            raise Refused(f"{field}: there is no data volume '{mount.id}' for this project")
        self._mount_claim(claim, mount.mount_path, field, read_only=claim.read_only)

    def _mount_claim(self, claim: ClaimSupply, at: str, field: str, *, read_only: bool) -> None:
        claim_folder = self._ground.claim_folder(claim.storage_class, claim.id)
        self.claims.append(claim)
        if claim.size_bytes is not None:
            self._sized(at, field, claim_folder, claim.size_bytes, read_only=read_only, durable=True)
        else:
            self._add(Volume("folder", at, field, source=f"{claim_folder}/data", mode=0o777, read_only=read_only))

    def _config_map(self, mount: ConfigMapMount, field: str) -> None:
        values = self._supplies.config_maps.get(mount.config_map)
        if values is None:
            raise Refused(f"{field}: there is no config map '{mount.config_map}'")
        files = _files(values, mount.default_mode, field)
        entry = mount.sub_path
        if not entry:
            self._add(_shown_files(mount.mount_path, field, files))
            return
        if entry not in files:
            known = ", ".join(sorted(files)) or "none"
            raise Refused(f"{field}.subPath: config map '{mount.config_map}' has no entry '{entry}'; it has {known}")
        volume = Volume("folder", mount.mount_path, field, source=self._scratch(), read_only=True)
        self._add(volume._replace(files={entry: files[entry]}, entry=entry))

    def _secret(self, mount: SecretMount, field: str) -> None:
        values = self._supplies.secrets.get(mount.secret)
        if values is None:
            raise Refused(f"{field}: there is no secret '{mount.secret}'")
        files = _files(values, mount.default_mode, field)
        self._add(_shown_files(mount.mount_path, field, files))

    def _git(self, mount: GitMount, field: str) -> None:
        self.repositories.append(fetches.render_git(mount, field, self._supplies.secrets, self._ground.settings))
        self._add(Volume("folder", mount.path, field, source=self._scratch(), mode=0o755, owned=True))

    def _s3(self, mount: BucketMount, field: str) -> None:
        manifest = f"{self._scratch()}.manifest"
        settings = self._ground.settings
        self.buckets.append(fetches.render_s3(mount, field, manifest, self._supplies.secrets, settings))
        self._add(Volume("folder", mount.path, field, source=self._scratch(), mode=0o755, owned=True))

    def plan_home(self) -> None:
        """The owner's home stays in sight in personal mode, the image's in a container; its own lies beside it."""
        ground = self._ground
        if self._pod.container.fields.create_home_dir and (ground.settings.is_personal or ground.runtime):
            source = f"{self._ground.private}/home"
            self._add(Volume("folder", PERSONAL_HOME, "createHomeDir", source=source, mode=0o700, owned=True))

    def plan_shared_memory(self) -> None:
        """A pod that is isolated has its own, small unless it asks; what is fetched keeps its keys there too.

        In a container it is the runtime's to give.
        """
        if self._ground.runtime:
            return
        settings = self._ground.settings
        is_isolated = not settings.is_personal and not settings.allowed.no_isolation
        is_needed = is_isolated or self.repositories or self.buckets
        if any(volume.at == SHARED_MEMORY for volume in self.mounts) or not is_needed:
            return
        is_large = bool(self._pod.container.fields.compute.large_shm_request) or not is_isolated
        size = self._pod.container.memory_limit_bytes if is_large else SHARED_MEMORY_BYTES
        self._add(Volume("memory", SHARED_MEMORY, "compute.largeShmRequest", size=size, mode=0o1777))


def _shown_files(at: str, field: str, files: Files) -> Volume:
    """In memory, so that secrets are never on a disk."""
    return Volume("memory", at, field, files=files, mode=0o755, read_only=True, owned=True)


def _files(values: Mapping[str, str], default_mode: str, field: str) -> Files:
    mode = int(default_mode, 8)
    files = {name: (text, mode) for name, text in values.items()}
    if "." in files or any(name.startswith("..") for name in files):
        raise Refused(f"{field}: a key that is '.' or begins with '..' cannot be a file")
    return files


NO_NFS = (
    "NFS cannot be mounted here: the server does not run as root, or this machine's kernel has no NFS client; "
    "mount the export on the machine and use a host path"
)


def check_runtime_can_mount(made_of: str, at: str, field: str, ground: VolumeContext) -> None:
    """Raise Refused for what a runtime cannot be handed: it takes paths between colons, and sees what its engine sees.

    `made_of` is the kind of volume, or `files` for one that shows files of the server.
    """
    runtime = ground.runtime
    if runtime and any(sign in at for sign in ":,"):
        raise Refused(f"{field}: '{at}' has a ':' or ',', which {runtime} reads as the end of a path")
    if ground.mounts or made_of in ("memory", "folder") or (made_of == "host" and ground.settings.is_personal):
        return
    raise Refused(
        f"{field}: {runtime} cannot mount it here; use the host runtime, or podman with a server that runs as root"
    )


def check_target(path: str, field: str) -> str:
    """Where a volume goes, in one spelling; raises Refused for what no volume may cover."""
    if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise Refused(f"{field}: '{path}' is not a valid mount point; give an absolute path without '..'")
    clean = "/" + posixpath.normpath(path).strip("/")
    kernel = any(clean == root or clean.startswith(f"{root}/") for root in _KERNEL)
    if clean == "/" or (kernel and clean != SHARED_MEMORY and not clean.startswith(f"{SHARED_MEMORY}/")):
        raise Refused(f"{field}: nothing can be mounted over '{clean}' on this machine; give a path such as /data")
    return clean


def can_be_made(working_dir: str, mounts: Iterable[Volume]) -> bool:
    """Whether a working directory may become a place of the pod's own: not where a volume is, nor over the kernel's."""
    try:
        directory = check_target(working_dir, "workingDir")
    except Refused:
        return False
    return not any(f"{directory}/".startswith(f"{volume.at}/") for volume in mounts)


def _refuse_twice(mounts: Iterable[Volume]) -> None:
    owners: dict[str, str] = {}
    for volume in mounts:
        owner = owners.setdefault(volume.at, volume.field)
        if owner != volume.field:
            raise Refused(f"{volume.field}: '{volume.at}' is also the mount path of {owner}; give each its own")
