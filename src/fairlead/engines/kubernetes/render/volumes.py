"""What pods mount, as volumes, mounts and claims of Kubernetes. Pure; `render.py` calls it.

Repositories and buckets are fetched by containers of their own (`render_git.py`, `render_s3.py`); a data volume is the
claim that the server says it is.
"""

from typing import Any

from msgspec import UNSET

from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of, name_of
from fairlead.engines.kubernetes.render.labels import CLAIM_LABEL, CLUSTER_LABEL, EPHEMERAL_LABEL, PROJECT_LABEL
from fairlead.formats.losses import Source
from fairlead.model.pods.supplies import KeptClaim
from fairlead.model.records.assets import Reference

#: Where a home of the pod's own is, as the variable HOME says too.
HOME = "/home/runai-home"
_MODES = (
    ("readWriteOnce", "ReadWriteOnce"),
    ("readOnlyMany", "ReadOnlyMany"),
    ("readWriteMany", "ReadWriteMany"),
)


def _claim_name(workload: str, number: int, item: dict[str, Any]) -> str:
    return str(item.get("claimName") or f"{workload}-{item.get('name') or number}").lower()


def render_claims(place: RenderContext, source: Source) -> list[dict[str, Any]]:
    """The claims that a workload brings with it."""
    found = []
    for number, item in source.items("storage.pvc"):
        if item.get("existingPvc"):
            continue
        here = f"storage.pvc[{number}].claimInfo"
        info = item.get("claimInfo") or {}
        modes = info.get("accessModes") or {}
        wanted = [mode for name, mode in _MODES if modes.get(name)] or ["ReadWriteOnce"]
        spec: dict[str, Any] = {"accessModes": wanted, "resources": {"requests": {"storage": info.get("size", "")}}}
        if info.get("storageClass"):
            spec["storageClassName"] = info["storageClass"]
        if info.get("volumeMode") == "Block":
            spec["volumeMode"] = "Block"
        annotations = {pair["key"]: pair.get("value", "") for pair in info.get("addedAttrValues") or ()}
        for path in [path for path in source.left if path.startswith(here)]:
            del source.left[path]
        metadata: dict[str, Any] = {"name": _claim_name(place.name, number, item), "namespace": place.namespace}
        if place.ownership_labels:
            marks = {**place.ownership_labels, EPHEMERAL_LABEL: "true" if item.get("ephemeral") else "false"}
            metadata = metadata_of(place, metadata["name"], marks)
        if annotations:
            metadata["annotations"] = annotations
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return found


def render_kept_claim(claim: KeptClaim, place: RenderContext) -> dict[str, Any]:
    """A claim that is nobody's but the server's: it stays when the workload goes that wanted it first."""
    labels = {CLAIM_LABEL: claim.id, CLUSTER_LABEL: place.ownership_labels[CLUSTER_LABEL], PROJECT_LABEL: place.project}
    spec: dict[str, Any] = {
        "accessModes": list(claim.access_modes),
        "resources": {"requests": {"storage": claim.size}},
        "volumeMode": claim.volume_mode,
    }
    if claim.storage_class:
        spec["storageClassName"] = claim.storage_class
    metadata: dict[str, Any] = {"name": claim.name, "namespace": place.namespace, "labels": labels}
    if claim.attributes:
        metadata["annotations"] = dict(claim.attributes)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def render_volumes(place: RenderContext, source: Source) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes of the pod and mounts of its container."""
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []

    def mount(kind: str, number: int, item: dict[str, Any], what: dict[str, Any], **how: Any) -> None:
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
        claim = {"claimName": _claim_name(place.name, number, item)}
        mount("pvc", number, item, {"persistentVolumeClaim": claim}, readOnly=item.get("readOnly"))
    for number, item in source.items("storage.dataVolume"):
        if claim_name := place.data_volumes.get(item["id"].lower()):
            mount("data", number, item, {"persistentVolumeClaim": {"claimName": claim_name}})
    for number, item in source.items("storage.configMapVolume"):
        what = {"name": name_of(place, Reference.CONFIG_MAP, item["configMap"]), **_mode(item)}
        mount("config", number, item, {"configMap": what}, subPath=item.get("subPath"))
    for number, item in source.items("storage.secretVolume"):
        name = name_of(place, Reference.SECRET, item["secret"])
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
