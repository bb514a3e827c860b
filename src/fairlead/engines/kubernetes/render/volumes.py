"""Volumes, mounts and claims of pods. Pure.

Containers of their own fetch repositories and buckets (`git.py`, `buckets.py`). The server says which claim a data
volume is.
"""

from typing import Any

from msgspec import UNSET

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of, name_of
from fairlead.engines.kubernetes.render.labels import CLAIM_LABEL, CLUSTER_LABEL, EPHEMERAL_LABEL, PROJECT_LABEL
from fairlead.formats.losses import Source
from fairlead.model.pods.supplies import KeptClaim
from fairlead.model.records.assets import Reference

#: The pod's own home folder, which is also the value of HOME.
HOME = "/home/runai-home"
_MODES = (
    ("readWriteOnce", "ReadWriteOnce"),
    ("readOnlyMany", "ReadOnlyMany"),
    ("readWriteMany", "ReadWriteMany"),
)


def _claim_name(workload: str, number: int, item: dict[str, Any]) -> str:
    return str(item.get("claimName") or f"{workload}-{item.get('name') or number}").lower()


def render_claims(context: RenderContext, source: Source) -> list[Manifest]:
    """The claims that are created with the workload."""
    found = []
    for number, item in source.items("storage.pvc"):
        if item.get("existingPvc"):
            continue
        here = f"storage.pvc[{number}].claimInfo"
        info = item.get("claimInfo") or {}
        modes = info.get("accessModes") or {}
        wanted = [mode for name, mode in _MODES if modes.get(name)] or ["ReadWriteOnce"]
        spec: Manifest = {"accessModes": wanted, "resources": {"requests": {"storage": info.get("size", "")}}}
        if info.get("storageClass"):
            spec["storageClassName"] = info["storageClass"]
        if info.get("volumeMode") == "Block":
            spec["volumeMode"] = "Block"
        annotations = {pair["key"]: pair.get("value", "") for pair in info.get("addedAttrValues") or ()}
        source.take_below(here)
        metadata: Manifest = {"name": _claim_name(context.name, number, item), "namespace": context.namespace}
        if context.ownership_labels:
            labels = {**context.ownership_labels, EPHEMERAL_LABEL: "true" if item.get("ephemeral") else "false"}
            metadata = metadata_of(context, metadata["name"], labels)
        if annotations:
            metadata["annotations"] = annotations
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return found


def render_kept_claim(claim: KeptClaim, context: RenderContext) -> Manifest:
    """A claim that belongs to the server: it stays when the workload that first asked for it is deleted."""
    labels = {
        CLAIM_LABEL: claim.id,
        CLUSTER_LABEL: context.ownership_labels[CLUSTER_LABEL],
        PROJECT_LABEL: context.project,
    }
    spec: Manifest = {
        "accessModes": list(claim.access_modes),
        "resources": {"requests": {"storage": claim.size}},
        "volumeMode": claim.volume_mode,
    }
    if claim.storage_class:
        spec["storageClassName"] = claim.storage_class
    metadata: Manifest = {"name": claim.name, "namespace": context.namespace, "labels": labels}
    if claim.attributes:
        metadata["annotations"] = dict(claim.attributes)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def render_volumes(context: RenderContext, source: Source) -> tuple[list[Manifest], list[Manifest]]:
    """The volumes of the pod, and the mounts of its container."""
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []

    def mount(kind: str, number: int, item: dict[str, Any], what: Manifest, **how: Any) -> None:
        name = f"{kind}-{number}"
        volumes.append({"name": name, **what})
        path = item.get("mountPath") or item.get("path")
        if kind == "pvc":
            path = item.get("path")
        mounts.append({"name": name, "mountPath": path, **{key: value for key, value in how.items() if value}})
        for leaf in [leaf for leaf in source.left if leaf.startswith(f"{_ROOTS[kind]}[{number}].")]:
            if not leaf.endswith((".dataSharing", ".ephemeral")) or source.left[leaf] is False:
                del source.left[leaf]

    for number, item in source.items("storage.pvc"):
        claim = {"claimName": _claim_name(context.name, number, item)}
        mount("pvc", number, item, {"persistentVolumeClaim": claim}, readOnly=item.get("readOnly"))
    for number, item in source.items("storage.dataVolume"):
        if claim_name := context.data_volumes.get(item["id"].lower()):
            mount("data", number, item, {"persistentVolumeClaim": {"claimName": claim_name}})
    for number, item in source.items("storage.configMapVolume"):
        what = {"name": name_of(context, Reference.CONFIG_MAP, item["configMap"]), **_mode(item)}
        mount("config", number, item, {"configMap": what}, subPath=item.get("subPath"))
    for number, item in source.items("storage.secretVolume"):
        name = name_of(context, Reference.SECRET, item["secret"])
        mount("secret", number, item, {"secret": {"secretName": name, **_mode(item)}})
    for number, item in source.items("storage.emptyDirVolume"):
        options = {name: item[name] for name in ("medium", "sizeLimit") if item.get(name)}
        mount("scratch", number, item, {"emptyDir": options})
    for number, item in source.items("storage.hostPath"):
        propagation = item.get("mountPropagation")
        mount(
            "host",
            number,
            item,
            {"hostPath": {"path": item["path"]}},
            readOnly=item.get("readOnly") is not False,
            mountPropagation=propagation if propagation != "None" else None,
        )
    for number, item in source.items("storage.nfs"):
        what = {"server": item["server"], "path": item["path"], "readOnly": item.get("readOnly", True)}
        mount("nfs", number, item, {"nfs": what}, readOnly=what["readOnly"])
    if source.take("createHomeDir") is True:
        volumes.append({"name": "home", "emptyDir": {}})
        mounts.append({"name": "home", "mountPath": HOME})
    if source.take("compute.largeShmRequest") not in (UNSET, False):
        volumes.append({"name": "dshm", "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": "dshm", "mountPath": "/dev/shm"})  # noqa: S108 - the path inside the container
    return volumes, mounts


_ROOTS = {
    "pvc": "storage.pvc",
    "data": "storage.dataVolume",
    "config": "storage.configMapVolume",
    "secret": "storage.secretVolume",
    "scratch": "storage.emptyDirVolume",
    "host": "storage.hostPath",
    "nfs": "storage.nfs",
}


def _mode(item: dict[str, Any]) -> dict[str, int]:
    mode = item.get("defaultMode")
    return {"defaultMode": int(mode, 8)} if mode else {}
