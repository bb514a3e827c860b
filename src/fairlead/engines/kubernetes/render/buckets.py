"""S3 buckets in pods: a container downloads objects before the command starts, another one uploads changes. Pure.

Both run our own program (`engines/buckets`) from a config map of the workload, so that any image with Python will do.
The second one is a sidecar, which Kubernetes stops after the pod's own container.
"""

import re
from typing import Any

from fairlead.engines.kubernetes.client.resources import CONFIG_MAP, Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of, name_of
from fairlead.formats.losses import Source
from fairlead.model.records.assets import Reference

#: Has Python. On nodes without a registry, operators load an image of this name.
IMAGE = "docker.io/library/python:3.11-slim"
PACKAGE = "fairlead.engines.buckets"
FILES = ("client.py", "copying.py", "beside.py")
_AMAZON = "https://s3.amazonaws.com"
_FOLDER, _PROGRAM, _VOLUME = "/bucket", "/program", "bucket-program"
_PATH = PACKAGE.replace(".", "/")
_UPLOAD = re.compile(r"s3-(\d+)-back")


def render_s3(context: RenderContext, source: Source) -> tuple[list[Manifest], list[Manifest], list[Manifest]]:
    """Volumes, mounts of the main container, and the containers that download and upload."""
    items = source.items("storage.s3") if context.ownership_labels else []
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []
    downloads: list[Manifest] = []
    uploads: list[Manifest] = []
    for number, item in items:
        name = f"s3-{number}"
        volumes.append({"name": name, "emptyDir": {}})
        mounts.append({"name": name, "mountPath": item["path"], "subPath": "data"})
        downloads.append(_container(context, item, name, "in"))
        uploads.append(_container(context, item, name, "back") | {"restartPolicy": "Always"})
        source.take_below(f"storage.s3[{number}].")
    if items:
        paths = [{"key": name, "path": f"{_PATH}/{name}"} for name in FILES]
        volumes.append({"name": _VOLUME, "configMap": {"name": program_name(context), "items": paths}})
    return volumes, mounts, downloads + uploads


def _container(context: RenderContext, item: dict[str, Any], name: str, verb: str) -> Manifest:
    environment = [
        {"name": "PYTHONPATH", "value": _PROGRAM},
        {"name": "BUCKET", "value": item["bucket"]},
        {"name": "BUCKET_URL", "value": (item.get("url") or _AMAZON).rstrip("/")},
        {"name": "BUCKET_FOLDER", "value": _FOLDER},
    ]
    if secret := item.get("accessKeySecret"):
        secret_name = name_of(context, Reference.SECRET, secret)
        keys = {
            "BUCKET_ACCESS": item.get("secretKeyOfAccessKeyId") or "AccessKeyId",
            "BUCKET_SECRET": item.get("secretKeyOfSecretKey") or "SecretKey",
        }
        for variable, key in keys.items():
            environment.append({"name": variable, "valueFrom": {"secretKeyRef": {"name": secret_name, "key": key}}})
    return {
        "name": f"{name}-{verb}",
        "image": IMAGE,
        "command": ["python3", "-m", f"{PACKAGE}.beside", verb],
        "env": environment,
        "volumeMounts": [{"name": name, "mountPath": _FOLDER}, {"name": _VOLUME, "mountPath": _PROGRAM}],
        # So that the pod's status shows the error.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def number_of_upload(container: str) -> int | None:
    """The number of the bucket to which a container uploads; None for other containers."""
    match = _UPLOAD.fullmatch(container)
    return int(match[1]) if match else None


def program_name(context: RenderContext) -> str:
    return f"{context.name}-bucket-program"


def render_program(context: RenderContext, texts: dict[str, str]) -> Manifest:
    """The program as a config map of the workload, which is deleted with it."""
    metadata = metadata_of(context, program_name(context))
    return {"apiVersion": CONFIG_MAP.api, "kind": CONFIG_MAP.kind, "metadata": metadata, "data": texts}
