"""Each storage field's effect on the local engine, what of it is refused before a start, and what is less here. Pure.

`EFFECTS` has an entry for every field below `storage` (and the few beside it that volumes provide), in a few words.
"""

from collections.abc import Collection
from typing import Any

from fairlead.engines.local import fetches
from fairlead.engines.local.volumes import NO_NFS, Ground, refuse_host_path, target
from fairlead.model.errors import Refused
from fairlead.model.podset import Container

#: (path of the field, why)
Note = tuple[str, str]
Item = dict[str, Any]

EFFECTS: dict[str, str] = {
    "createHomeDir": "a home folder of the pod's own, gone with it; shared mode gives one to every pod",
    "workingDir": "the command starts there; made where it lies in a volume, the home or /tmp",
    "compute.largeShmRequest": "isolated pods: /dev/shm up to the memory limit instead of 64 MiB",
    "storage.emptyDirVolume.path": "an empty folder there, gone with the pod",
    "storage.emptyDirVolume.medium": "Memory: a file system in memory",
    "storage.emptyDirVolume.sizeLimit": "bounded by a file system of that size; without root, watched and evicted",
    "storage.hostPath.path": "that path of the machine; shared mode: below an allowed folder only",
    "storage.hostPath.mountPath": "appears there",
    "storage.hostPath.readOnly": "a read-only mount unless false",
    "storage.hostPath.mountPropagation": "HostToContainer: later mounts of the machine appear in it",
    "storage.nfs.server": "the kernel's NFS client mounts it; refused where there is none",
    "storage.nfs.path": "the export that is mounted",
    "storage.nfs.mountPath": "appears there",
    "storage.nfs.readOnly": "a read-only mount unless false",
    "storage.pvc.path": "the claim's storage appears there",
    "storage.pvc.existingPvc": "true: refused unless the claim exists",
    "storage.pvc.claimName": "the claim of that name in the project, made if there is none",
    "storage.pvc.readOnly": "a read-only mount",
    "storage.pvc.ephemeral": "storage of the workload's own, removed whenever it stops",
    "storage.pvc.dataSharing": "not enforced: a claim belongs to its project; share it as a data volume",
    "storage.pvc.claimInfo.size": "bounded by a file system of that size; without root, watched and evicted",
    "storage.pvc.claimInfo.storageClass": "in which folder of the machine claims of that class lie",
    "storage.pvc.claimInfo.accessModes.readWriteOnce": "read and write",
    "storage.pvc.claimInfo.accessModes.readOnlyMany": "alone: a read-only mount",
    "storage.pvc.claimInfo.accessModes.readWriteMany": "read and write, by any number of pods",
    "storage.pvc.claimInfo.volumeMode": "Filesystem; Block is refused",
    "storage.pvc.claimInfo.addedAttrValues": "annotations of the claim, kept with it",
    "storage.configMapVolume.configMap": "its entries as files, as they are when the pod starts",
    "storage.configMapVolume.mountPath": "appears there, read-only",
    "storage.configMapVolume.subPath": "that entry alone, as a file",
    "storage.configMapVolume.defaultMode": "permissions of the files",
    "storage.secretVolume.secret": "its keys as files in memory, as they are when the pod starts",
    "storage.secretVolume.mountPath": "appears there, read-only",
    "storage.secretVolume.defaultMode": "permissions of the files",
    "storage.dataVolume.id": "the shared claim's storage, read-only outside its own project",
    "storage.dataVolume.mountPath": "appears there",
    "storage.git.repository": "cloned before the start, over https or ssh, in the pod's isolation",
    "storage.git.branch": "the branch that is checked out",
    "storage.git.revision": "the commit or tag that is checked out",
    "storage.git.path": "the working copy appears there",
    "storage.git.passwordSecret": "user and password from the secret, by askpass",
    "storage.git.secretKeyOfUser": "which key of the secret is the user",
    "storage.git.secretKeyOfPassword": "which key of the secret is the password",
    "storage.git.secretRef.name": "the secret with the credentials",
    "storage.git.secretRef.authenticationMethod": "password by askpass, or an SSH key",
    "storage.git.secretRef.secretKeyOfUser": "which key of the secret is the user",
    "storage.git.secretRef.secretKeyOfPassword": "which key of the secret is the password or the SSH key",
    "storage.s3.bucket": "its objects are copied in before the start, changed files back after the end",
    "storage.s3.path": "the objects appear there as files",
    "storage.s3.url": "the service that is asked",
    "storage.s3.accessKeySecret": "requests are signed with the access key in it",
    "storage.s3.secretKeyOfAccessKeyId": "which key of the secret is the access key's id",
    "storage.s3.secretKeyOfSecretKey": "which key of the secret is the secret key",
}
#: Members that only tell items apart or leave them out; they have their effect before an engine sees them.
NAMING = ("name", "exclude")

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
_OPEN = "pods are not isolated from each other here, so '{}' could be read by all of them"


class _Anything(dict[str, Any]):
    """Stands for secrets that exist: what is missing in them is said at the start."""

    def get(self, key: str, default: Any = None) -> Any:
        return self

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Any:
        return ""


def refuse(container: Container, ground: Ground, classes: Collection[str], may_use_secrets: bool) -> list[Note]:
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
            secret = _secret_of(name, item)
            if secret and not may_use_secrets:
                notes.append((field, _OPEN.format(secret)))
    return notes


def _refuse_item(name: str, item: Item, field: str, ground: Ground, classes: Collection[str]) -> list[Note]:
    settings = ground.settings
    if name == "emptyDirVolume" and item.get("medium") not in (None, "", "Memory"):
        return [(f"{field}.medium", f"'{item['medium']}' is not known here; leave it out for disk, or give Memory")]
    if name == "hostPath" and not settings.is_personal:
        path, allowed = item["path"].rstrip("/") or "/", settings.allowed.host_paths
        if ".." in path.split("/") or not any(f"{path}/".startswith(f"{root.rstrip('/')}/") for root in allowed):
            return [(f"{field}.path", refuse_host_path(item["path"], settings))]
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


def _secret_of(name: str, item: Item) -> str:
    if name == "secretVolume":
        return str(item["secret"])
    if name == "git":
        return str((item.get("secretRef") or {}).get("name") or item.get("passwordSecret") or "")
    return str(item.get("accessKeySecret") or "") if name == "s3" else ""


def _checked(attempt: Any) -> list[Note]:
    try:
        attempt()
    except Refused as refused:
        field, _, why = str(refused).partition(": ")
        return [(field, why)]
    return []


def advise(container: Container, ground: Ground) -> list[Note]:
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
    if (container.fields.get("compute") or {}).get("largeShmRequest") and ground.settings.is_personal:
        notes.append(("compute.largeShmRequest", "shared memory is this machine's own and has its size"))
    return notes


def _watched(ground: Ground) -> str:
    seconds = f"{ground.settings.gauge_seconds:g}"
    return f"it is looked at every {seconds} s and the pod evicted when it is over; bounding it takes root and mke2fs"
