"""Buckets in pods: a container that copies objects in before the command starts, and one that writes changes back.

Pure. Both run our own program (`engines/buckets`), which a config map of the workload brings along, so that any image
with Python will do. The second stands beside the pod's own container and is told to end after it.
"""

import re
from typing import Any

from fairlead.engines.kubernetes.client.resources import CONFIG_MAP
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of, name_of
from fairlead.formats.losses import Source
from fairlead.model.records.assets import Reference

#: Has Python; operators whose nodes reach no registry give them an image of this name.
IMAGE = "docker.io/library/python:3.11-slim"
PACKAGE = "fairlead.engines.buckets"
FILES = ("client.py", "copying.py", "beside.py")
_AMAZON = "https://s3.amazonaws.com"
_FOLDER, _PROGRAM, _VOLUME = "/bucket", "/program", "bucket-program"
_PATH = PACKAGE.replace(".", "/")
_RETURNING = re.compile(r"s3-(\d+)-back")


def render_s3(
    place: RenderContext, source: Source
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes, mounts of the main container, and the containers that fill them and bring changes back."""
    items = source.items("storage.s3") if place.ownership_labels else []
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    filling: list[dict[str, Any]] = []
    returning: list[dict[str, Any]] = []
    for number, item in items:
        name = f"s3-{number}"
        volumes.append({"name": name, "emptyDir": {}})
        mounts.append({"name": name, "mountPath": item["path"], "subPath": "data"})
        filling.append(_container(place, item, name, "in"))
        returning.append(_container(place, item, name, "back") | {"restartPolicy": "Always"})
        for leaf in [leaf for leaf in source.left if leaf.startswith(f"storage.s3[{number}].")]:
            del source.left[leaf]
    if items:
        paths = [{"key": name, "path": f"{_PATH}/{name}"} for name in FILES]
        volumes.append({"name": _VOLUME, "configMap": {"name": program_name(place), "items": paths}})
    return volumes, mounts, filling + returning


def _container(place: RenderContext, item: dict[str, Any], name: str, verb: str) -> dict[str, Any]:
    environment = [
        {"name": "PYTHONPATH", "value": _PROGRAM},
        {"name": "BUCKET", "value": item["bucket"]},
        {"name": "BUCKET_URL", "value": (item.get("url") or _AMAZON).rstrip("/")},
        {"name": "BUCKET_FOLDER", "value": _FOLDER},
    ]
    if secret := item.get("accessKeySecret"):
        named = name_of(place, Reference.SECRET, secret)
        keys = {
            "BUCKET_ACCESS": item.get("secretKeyOfAccessKeyId") or "AccessKeyId",
            "BUCKET_SECRET": item.get("secretKeyOfSecretKey") or "SecretKey",
        }
        for variable, key in keys.items():
            environment.append({"name": variable, "valueFrom": {"secretKeyRef": {"name": named, "key": key}}})
    return {
        "name": f"{name}-{verb}",
        "image": IMAGE,
        "command": ["python3", "-m", f"{PACKAGE}.beside", verb],
        "env": environment,
        "volumeMounts": [{"name": name, "mountPath": _FOLDER}, {"name": _VOLUME, "mountPath": _PROGRAM}],
        # What went wrong is then said in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def number_of_return(container: str) -> int | None:
    """Which bucket a container brings changes back to, by its name; None for other containers."""
    found = _RETURNING.fullmatch(container)
    return int(found[1]) if found else None


def program_name(place: RenderContext) -> str:
    return f"{place.name}-bucket-program"


def render_program(place: RenderContext, texts: dict[str, str]) -> dict[str, Any]:
    """The program as a config map of the workload, which goes with it."""
    metadata = metadata_of(place, program_name(place))
    return {"apiVersion": CONFIG_MAP.api, "kind": CONFIG_MAP.kind, "metadata": metadata, "data": texts}
