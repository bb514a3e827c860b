"""From a pod's storage fields to the volumes that its process mounts: where, from what, how large, who fetches. Pure.

Called by `orders.py`. What cannot be provided is refused with the field's name; nothing is left out silently. The
dicts that come out are what `sources.py` and `fetching.py` carry out in the pod's process.
"""

import posixpath
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fairlead.engines.local.plan import fetches
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSpec
from fairlead.model.pods.supplies import ClaimSupply, Supplies
from fairlead.model.quantity import whole

Volume = dict[str, Any]
Item = dict[str, Any]

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
    mounts: tuple[Volume, ...] = ()
    #: What is fetched into volumes before the start, and for s3 brought back after the end.
    fetches: tuple[Item, ...] = ()
    #: Folders whose size is watched, where it cannot be bounded: (path, bytes, what it is).
    gauges: tuple[tuple[str, int, str], ...] = ()
    #: Claims that it mounts.
    claims: tuple[ClaimSupply, ...] = ()
    #: What lets it in at registries of images, as they are kept.
    registries: tuple[str, ...] = ()


def plan_volumes(pod: PodSpec, supplies: Supplies, ground: VolumeContext) -> Volumes:
    """Every volume of a pod; raises Refused for the first that cannot be provided."""
    planner = _Planner(pod, supplies, ground)
    storage = pod.container.fields.get("storage") or {}
    for name, plan in planner.kinds.items():
        for number, item in enumerate(storage.get(name) or ()):
            plan(item, f"storage.{name}[{item.get('name') or item.get('id') or number}]", number)
    planner.plan_home()
    planner.plan_shared_memory()
    _refuse_twice(planner.mounts)
    return Volumes(
        mounts=tuple(planner.mounts),
        fetches=tuple(planner.fetches),
        gauges=tuple(planner.gauges),
        claims=tuple(planner.claims),
        registries=supplies.registries,
    )


class _Planner:
    def __init__(self, pod: PodSpec, supplies: Supplies, ground: VolumeContext) -> None:
        self._pod = pod
        self._supplies = supplies
        self._ground = ground
        self.mounts: list[Volume] = []
        self.fetches: list[Item] = []
        self.gauges: list[tuple[str, int, str]] = []
        self.claims: list[ClaimSupply] = []
        self.kinds: dict[str, Callable[[Item, str, int], None]] = {
            "emptyDirVolume": self._empty_dir,
            "hostPath": self._host_path,
            "nfs": self._nfs,
            "pvc": self._claim,
            "dataVolume": self._data_volume,
            "configMapVolume": self._config_map,
            "secretVolume": self._secret,
            "git": self._git,
            "s3": self._s3,
        }

    def _add(self, kind: str, at: str, field: str, **members: Any) -> None:
        volume = {"kind": kind, "at": target(at, field), "field": field, **members}
        refuse_unmounted(volume, self._ground)
        self.mounts.append(volume)

    def _scratch(self, field: str) -> str:
        """A place of the attempt's own for one volume."""
        return f"{self._ground.private}/volumes/{len(self.mounts)}"

    def _empty_dir(self, item: Item, field: str, number: int) -> None:
        size = whole(item["sizeLimit"]) if item.get("sizeLimit") else None
        medium = item.get("medium") or ""
        if medium == "Memory":
            self._add("memory", item["path"], field, size=size, mode=0o777)
        elif medium:
            raise Refused(f"{field}.medium: '{medium}' is not known here; leave it out for disk, or give Memory")
        elif size is None:
            self._add("folder", item["path"], field, source=self._scratch(field), mode=0o777)
        else:
            self._sized(item["path"], field, self._scratch(field), size, read_only=False, durable=False)

    def _sized(self, at: str, field: str, place: str, size: int, *, read_only: bool, durable: bool) -> None:
        """Bounded by a file system of that size where one can be mounted, otherwise watched."""
        if self._ground.has_images and not self._ground.is_plain(place):
            members = {"source": f"{place}/image", "size": size, "durable": durable}
            self._add("image", at, field, mode=0o777, read_only=read_only, **members)
            return
        self._add("folder", at, field, source=f"{place}/data", mode=0o777, read_only=read_only)
        if not read_only:
            self.gauges.append((f"{place}/data", size, field))

    def _host_path(self, item: Item, field: str, number: int) -> None:
        settings = self._ground.settings
        path = posixpath.normpath(item["path"])
        if not path.startswith("/") or ".." in item["path"].split("/"):
            raise Refused(f"{field}.path: '{item['path']}' is no absolute path without '..'")
        within = ""
        if not settings.is_personal:
            around = [folder.rstrip("/") or "/" for folder in settings.allowed.host_paths]
            found = [folder for folder in around if path == folder or path.startswith(folder.rstrip("/") + "/")]
            if not found:
                raise Refused(f"{field}.path: {settings.allowed.words_of_path(path)}")
            within = max(found, key=len)
        follows = item.get("mountPropagation") == "HostToContainer"
        members = {"source": path, "within": within, "follows": follows, "read_only": item.get("readOnly", True)}
        self._add("host", item["mountPath"], field, **members)

    def _nfs(self, item: Item, field: str, number: int) -> None:
        if not self._ground.has_nfs:
            raise Refused(f"{field}: {NO_NFS}")
        try:
            address = self._ground.look_up(item["server"])
        except OSError as error:
            raise Refused(f"{field}.server: '{item['server']}' has no address: {error.strerror}") from error
        source = f"{item['server']}:{item['path']}"
        read_only = item.get("readOnly", True)
        self._add("nfs", item["mountPath"], field, source=source, address=address, read_only=read_only)

    def _claim(self, item: Item, field: str, number: int) -> None:
        if item.get("ephemeral"):
            info = item.get("claimInfo") or {}
            claim = ClaimSupply(
                id=f"{self._pod.workload_id}.{number}",
                name=item.get("claimName") or f"{self._pod.workload_name}-{number}",
                size_bytes=whole(info["size"]) if info.get("size") else None,
                storage_class=info.get("storageClass") or "",
                workload_id=self._pod.workload_id,
            )
        elif number in self._supplies.claims:
            claim = self._supplies.claims[number]
        else:
            raise Refused(f"{field}: there is no claim '{item.get('claimName', '')}'")
        self._mount_claim(claim, item["path"], field, read_only=bool(item.get("readOnly")) or claim.read_only)

    def _data_volume(self, item: Item, field: str, number: int) -> None:
        claim = self._supplies.data_volumes.get(item["id"].lower())
        if claim is None:
            raise Refused(f"{field}: there is no data volume '{item['id']}' for this project")
        self._mount_claim(claim, item["mountPath"], field, read_only=claim.read_only)

    def _mount_claim(self, claim: ClaimSupply, at: str, field: str, *, read_only: bool) -> None:
        place = self._ground.claim_folder(claim.storage_class, claim.id)
        self.claims.append(claim)
        if claim.size_bytes is not None:
            self._sized(at, field, place, claim.size_bytes, read_only=read_only, durable=True)
        else:
            self._add("folder", at, field, source=f"{place}/data", mode=0o777, read_only=read_only)

    def _config_map(self, item: Item, field: str, number: int) -> None:
        values = self._supplies.config_maps.get(item["configMap"])
        if values is None:
            raise Refused(f"{field}: there is no config map '{item['configMap']}'")
        files = _files(values, item, field)
        entry = item.get("subPath")
        if not entry:
            self._add("memory", item["mountPath"], field, files=files, mode=0o755, read_only=True, owned=True)
            return
        if entry not in files:
            known = ", ".join(sorted(files)) or "none"
            raise Refused(f"{field}.subPath: config map '{item['configMap']}' has no entry '{entry}'; it has {known}")
        members = {"source": self._scratch(field), "files": {entry: files[entry]}, "entry": entry}
        self._add("folder", item["mountPath"], field, read_only=True, **members)

    def _secret(self, item: Item, field: str, number: int) -> None:
        values = self._supplies.secrets.get(item["secret"])
        if values is None:
            raise Refused(f"{field}: there is no secret '{item['secret']}'")
        files = _files(values, item, field)
        # In memory, so that no disk ever has them.
        self._add("memory", item["mountPath"], field, files=files, mode=0o755, read_only=True, owned=True)

    def _git(self, item: Item, field: str, number: int) -> None:
        self.fetches.append(fetches.render_git(item, field, self._supplies.secrets, self._ground.settings))
        self._add("folder", item["path"], field, source=self._scratch(field), mode=0o755, owned=True)

    def _s3(self, item: Item, field: str, number: int) -> None:
        fetch = fetches.render_s3(item, field, self._supplies.secrets, self._ground.settings)
        fetch["manifest"] = f"{self._scratch(field)}.manifest"
        self.fetches.append(fetch)
        self._add("folder", item["path"], field, source=self._scratch(field), mode=0o755, owned=True)

    def plan_home(self) -> None:
        """The owner's home stays in sight in personal mode, the image's in a container; its own lies beside it."""
        ground = self._ground
        if self._pod.container.fields.get("createHomeDir") and (ground.settings.is_personal or ground.runtime):
            source = f"{self._ground.private}/home"
            self._add("folder", PERSONAL_HOME, "createHomeDir", source=source, mode=0o700, owned=True)

    def plan_shared_memory(self) -> None:
        """A pod that is isolated has its own, small unless it asks; what is fetched keeps its keys there too.

        In a container it is the runtime's to give.
        """
        if self._ground.runtime:
            return
        settings = self._ground.settings
        is_isolated = not settings.is_personal and not settings.allowed.no_isolation
        if any(volume["at"] == SHARED_MEMORY for volume in self.mounts) or not (is_isolated or self.fetches):
            return
        compute = self._pod.container.fields.get("compute") or {}
        is_large = bool(compute.get("largeShmRequest")) or not is_isolated
        size = self._pod.container.memory_limit_bytes if is_large else SHARED_MEMORY_BYTES
        self._add("memory", SHARED_MEMORY, "compute.largeShmRequest", size=size, mode=0o1777)


def _files(values: Iterable[Any], item: Item, field: str) -> dict[str, tuple[str, int]]:
    mode = int(item.get("defaultMode") or "0644", 8)
    files = {name: (text, mode) for name, text in dict(values).items()}
    if "." in files or any(name.startswith("..") for name in files):
        raise Refused(f"{field}: a key that is '.' or begins with '..' cannot be a file")
    return files


NO_NFS = (
    "NFS cannot be mounted here: the server does not run as root, or this machine's kernel has no NFS client; "
    "mount the export on the machine and use a host path"
)


def refuse_unmounted(volume: Volume, ground: VolumeContext) -> None:
    """What a runtime cannot be handed as it is: it takes paths between colons, and sees what its own engine sees."""
    field, runtime = volume["field"], ground.runtime
    if runtime and any(sign in volume["at"] for sign in ":,"):
        raise Refused(f"{field}: '{volume['at']}' has a ':' or ',', which {runtime} takes for the end of a path")
    if ground.mounts:
        return
    is_memory = volume["kind"] == "memory" and not volume.get("files")
    is_folder = volume["kind"] == "folder" and not volume.get("files")
    if is_memory or is_folder or (volume["kind"] == "host" and ground.settings.is_personal):
        return
    raise Refused(f"{field}: {runtime} cannot be given it here; use the host runtime, or podman with a server of root")


def target(path: str, field: str) -> str:
    """Where a volume goes, in one spelling; raises Refused for what no volume may cover."""
    if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise Refused(f"{field}: '{path}' cannot be mounted to: an absolute path without '..' is needed")
    clean = "/" + posixpath.normpath(path).strip("/")
    kernel = any(clean == root or clean.startswith(f"{root}/") for root in _KERNEL)
    if clean == "/" or (kernel and clean != SHARED_MEMORY and not clean.startswith(f"{SHARED_MEMORY}/")):
        raise Refused(f"{field}: nothing can be mounted over '{clean}'")
    return clean


def can_be_made(working_dir: str, mounts: Iterable[Volume]) -> bool:
    """Whether a working directory may become a place of the pod's own: not where a volume is, nor over the kernel's."""
    try:
        place = target(working_dir, "workingDir")
    except Refused:
        return False
    return not any(f"{place}/".startswith(f"{volume['at']}/") for volume in mounts)


def _refuse_twice(mounts: list[Volume]) -> None:
    seen: dict[str, str] = {}
    for volume in mounts:
        other = seen.setdefault(volume["at"], volume["field"])
        if other != volume["field"]:
            raise Refused(f"{volume['field']}: '{volume['at']}' is also the place of {other}; give each its own")
