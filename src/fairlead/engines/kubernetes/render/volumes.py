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
    claims = []
    for number, item in source.items("storage.pvc"):
        if item.get("existingPvc"):
            continue
        claim_path = f"storage.pvc[{number}].claimInfo"
        info = item.get("claimInfo") or {}
        modes = info.get("accessModes") or {}
        wanted = [mode for name, mode in _MODES if modes.get(name)] or ["ReadWriteOnce"]
        spec: Manifest = {"accessModes": wanted, "resources": {"requests": {"storage": info.get("size", "")}}}
        if info.get("storageClass"):
            spec["storageClassName"] = info["storageClass"]
        if info.get("volumeMode") == "Block":
            spec["volumeMode"] = "Block"
        annotations = {pair["key"]: pair.get("value", "") for pair in info.get("addedAttrValues") or ()}
        source.take_below(claim_path)
        metadata: Manifest = {"name": _claim_name(context.name, number, item), "namespace": context.namespace}
        if context.ownership_labels:
            labels = {**context.ownership_labels, EPHEMERAL_LABEL: "true" if item.get("ephemeral") else "false"}
            metadata = metadata_of(context, metadata["name"], labels)
        if annotations:
            metadata["annotations"] = annotations
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return claims


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


#: An item of a spec's list, as REST has it.
_Item = dict[str, Any]
#: The source of a volume, and the options of its mount; None if nothing is mounted.
_Mounted = tuple[Manifest, Manifest] | None


def render_volumes(context: RenderContext, source: Source) -> tuple[list[Manifest], list[Manifest]]:
    """The volumes of the pod, and the mounts of its container."""
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []
    for field, prefix, render in _KINDS:
        for number, item in source.items(field):
            mounted = render(context, number, item)
            if mounted is None:
                continue
            volume, options = mounted
            name = f"{prefix}-{number}"
            # A claim's mount has one path only; of other kinds, `path` may be that on the other side.
            path = item.get("path") if render is _claim else item.get("mountPath") or item.get("path")
            volumes.append({"name": name, **volume})
            mounts.append({"name": name, "mountPath": path, **_given(options)})
            source.take_below(f"{field}[{number}].", except_for=(".dataSharing", ".ephemeral"))
    if source.take("createHomeDir") is True:
        volumes.append({"name": "home", "emptyDir": {}})
        mounts.append({"name": "home", "mountPath": HOME})
    if source.take("compute.largeShmRequest") not in (UNSET, False):
        volumes.append({"name": "dshm", "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": "dshm", "mountPath": "/dev/shm"})  # noqa: S108 - the path inside the container
    return volumes, mounts


def _claim(context: RenderContext, number: int, item: _Item) -> _Mounted:
    claim = {"claimName": _claim_name(context.name, number, item)}
    return {"persistentVolumeClaim": claim}, {"readOnly": item.get("readOnly")}


def _data_volume(context: RenderContext, _: int, item: _Item) -> _Mounted:
    claim = context.data_volumes.get(item["id"].lower())
    return ({"persistentVolumeClaim": {"claimName": claim}}, {}) if claim else None


def _config_map(context: RenderContext, _: int, item: _Item) -> _Mounted:
    volume = {"name": name_of(context, Reference.CONFIG_MAP, item["configMap"]), **_mode(item)}
    return {"configMap": volume}, {"subPath": item.get("subPath")}


def _secret(context: RenderContext, _: int, item: _Item) -> _Mounted:
    return {"secret": {"secretName": name_of(context, Reference.SECRET, item["secret"]), **_mode(item)}}, {}


def _empty_dir(_context: RenderContext, _: int, item: _Item) -> _Mounted:
    return {"emptyDir": _given({name: item.get(name) for name in ("medium", "sizeLimit")})}, {}


def _host_path(_context: RenderContext, _: int, item: _Item) -> _Mounted:
    propagation = item.get("mountPropagation")
    options = {
        "readOnly": item.get("readOnly") is not False,
        "mountPropagation": propagation if propagation != "None" else None,
    }
    return {"hostPath": {"path": item["path"]}}, options


def _nfs(_context: RenderContext, _: int, item: _Item) -> _Mounted:
    volume = {"server": item["server"], "path": item["path"], "readOnly": item.get("readOnly", True)}
    return {"nfs": volume}, {"readOnly": volume["readOnly"]}


#: The field of the spec, the prefix of the volume's name, and how its items are rendered.
_KINDS = (
    ("storage.pvc", "pvc", _claim),
    ("storage.dataVolume", "data", _data_volume),
    ("storage.configMapVolume", "config", _config_map),
    ("storage.secretVolume", "secret", _secret),
    ("storage.emptyDirVolume", "scratch", _empty_dir),
    ("storage.hostPath", "host", _host_path),
    ("storage.nfs", "nfs", _nfs),
)


def _given(members: Manifest) -> Manifest:
    return {name: value for name, value in members.items() if value}


def _mode(item: _Item) -> dict[str, int]:
    mode = item.get("defaultMode")
    return {"defaultMode": int(mode, 8)} if mode else {}
