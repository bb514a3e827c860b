"""Volumes on demand: every claim of the class `standard` gets a folder of this machine, which goes with the claim.

The stand-in asks it about claims and volumes as they change. A folder that everybody may write, because what Kubernetes
can do for a pod's user (`fsGroup`) it does not do for folders of a node.
"""

import shutil
from pathlib import Path

from deploy.cluster.api import Api, ApiError, Object

CLASS, PROVISIONER = "standard", "cluster.fairlead/folder"
_MADE_BY = "pv.kubernetes.io/provisioned-by"


class Volumes:
    def __init__(self, api: Api, folder: Path) -> None:
        self._api = api
        self._folder = folder

    def note_claim(self, kind: str, claim: Object) -> None:
        spec = claim["spec"]
        if kind == "DELETED" or spec.get("storageClassName") != CLASS or spec.get("volumeName"):
            return
        place = self._folder / f"pvc-{claim['metadata']['uid']}"
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o777)
        try:
            self._api.call("POST", "/api/v1/persistentvolumes", render_volume(claim, place))
        except ApiError as error:
            # Seen before: binding it takes the controller manager a moment.
            if error.status != 409:
                raise

    def note_volume(self, kind: str, volume: Object) -> None:
        if kind == "DELETED" or volume["metadata"].get("annotations", {}).get(_MADE_BY) != PROVISIONER:
            return
        is_free = volume.get("status", {}).get("phase") == "Released"
        if is_free and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            shutil.rmtree(self._folder / volume["metadata"]["name"], ignore_errors=True)
            self._api.call("DELETE", f"/api/v1/persistentvolumes/{volume['metadata']['name']}")


def render_volume(claim: Object, place: Path) -> Object:
    owner = {name: claim["metadata"][name] for name in ("name", "namespace", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": place.name, "annotations": {_MADE_BY: PROVISIONER}},
        "spec": {
            "storageClassName": CLASS,
            "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": str(place), "type": "Directory"},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **owner},
        },
    }
