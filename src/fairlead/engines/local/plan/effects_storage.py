"""Which storage fields are refused before a start, and which have less effect here. Pure; called by `storage.py`."""

from collections.abc import Collection
from typing import Any

from fairlead.engines.local.plan import fetches
from fairlead.engines.local.plan.volumes import NO_NFS, VolumeContext, refuse_unmounted, target
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodContainer

#: (path of the field, why)
Note = tuple[str, str]
Item = dict[str, Any]

_TARGETS = {
    "emptyDirVolume": "path",
    "hostPath": "mountPath",
    "nfs": "mountPath",
    "pvc": "path",
    "configMapVolume": "mountPath",
    "secretVolume": "mountPath",
    "dataVolume": "mountPath",
    "git": "path",
    "s3": "path",
}
_BLOCK = "raw devices are not provided by the local engine; leave it out for a file system"


class _Anything(dict[str, Any]):
    """Stands for secrets that exist: what is missing in them is said at the start."""

    def get(self, key: str, default: Any = None) -> Any:
        return self

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Any:
        return ""


def refuse(container: PodContainer, ground: VolumeContext, classes: Collection[str]) -> list[Note]:
    """Every storage field that this server cannot or may not provide, with the reason."""
    storage = container.fields.get("storage") or {}
    notes = [(f"storage.{name}", "the local engine does not know it") for name in storage if name not in _TARGETS]
    seen: dict[str, str] = {}
    for name, member in _TARGETS.items():
        for number, item in enumerate(storage.get(name) or ()):
            field = f"storage.{name}[{item.get('name') or item.get('id') or number}]"
            notes += _checked(lambda item=item, field=field, member=member: target(item[member], field))
            other = seen.setdefault(item[member].rstrip("/"), field)
            if other != field:
                notes.append((field, f"'{item[member]}' is also the place of {other}; give each its own"))
            notes += _refuse_item(name, item, field, ground, classes)
            if ground.runtime:
                volume = _as_volume(name, item, item[member], field)
                notes += _checked(lambda volume=volume: refuse_unmounted(volume, ground))
    return notes


#: What a volume of each kind is made of, as far as runtimes differ in what they can be handed.
_MADE_OF = {"hostPath": "host", "nfs": "nfs", "secretVolume": "files", "configMapVolume": "files"}


def _as_volume(name: str, item: Item, at: str, field: str) -> Item:
    kind = "memory" if name == "emptyDirVolume" and item.get("medium") == "Memory" else _MADE_OF.get(name, "folder")
    return {"kind": kind, "at": at, "field": field}


def _refuse_item(name: str, item: Item, field: str, ground: VolumeContext, classes: Collection[str]) -> list[Note]:
    settings = ground.settings
    if name == "emptyDirVolume" and item.get("medium") not in (None, "", "Memory"):
        return [(f"{field}.medium", f"'{item['medium']}' is not known here; leave it out for disk, or give Memory")]
    if name == "hostPath" and not settings.is_personal and not settings.allowed.has_path(item["path"]):
        return [(f"{field}.path", settings.allowed.words_of_path(item["path"]))]
    if name == "nfs" and not ground.has_nfs:
        return [(field, NO_NFS)]
    if name == "pvc":
        return _refuse_claim(item, field, classes)
    if name == "git":
        return _checked(lambda: fetches.render_git(item, field, _Anything(), settings))
    if name == "s3":
        return _checked(lambda: fetches.render_s3(item, field, _Anything(), settings))
    return []


def _refuse_claim(item: Item, field: str, classes: Collection[str]) -> list[Note]:
    info = item.get("claimInfo") or {}
    notes = []
    if info.get("volumeMode") == "Block":
        notes.append((f"{field}.claimInfo.volumeMode", _BLOCK))
    storage_class = info.get("storageClass")
    if storage_class and storage_class not in classes:
        known = ", ".join(classes)
        why = f"there is no storage class '{storage_class}' here; there is {known}"
        notes.append((f"{field}.claimInfo.storageClass", why))
    return notes


def _checked(attempt: Any) -> list[Note]:
    try:
        attempt()
    except Refused as refused:
        field, _, why = str(refused).partition(": ")
        return [(field, why)]
    return []


def advise(container: PodContainer, ground: VolumeContext) -> list[Note]:
    """Storage fields whose effect is less here than on a cluster."""
    storage = container.fields.get("storage") or {}
    notes = []
    for number, item in enumerate(storage.get("pvc") or ()):
        field = f"storage.pvc[{item.get('name') or number}]"
        if item.get("dataSharing"):
            notes.append((f"{field}.dataSharing", "a claim belongs to its project here; share it as a data volume"))
        if (item.get("claimInfo") or {}).get("size") and not ground.has_images:
            notes.append((f"{field}.claimInfo.size", _watched(ground)))
    for number, item in enumerate(storage.get("emptyDirVolume") or ()):
        if item.get("sizeLimit") and item.get("medium") != "Memory" and not ground.has_images:
            notes.append((f"storage.emptyDirVolume[{item.get('name') or number}].sizeLimit", _watched(ground)))
    is_large = (container.fields.get("compute") or {}).get("largeShmRequest")
    if is_large and ground.settings.is_personal and not ground.runtime:
        notes.append(("compute.largeShmRequest", "shared memory is this machine's own and has its size"))
    return notes


def _watched(ground: VolumeContext) -> str:
    seconds = f"{ground.settings.gauge_seconds:g}"
    return f"it is looked at every {seconds} s and the pod evicted when it is over; bounding it takes root and mke2fs"
