"""Every field that the documents of workload YAML list, one row each: its kinds, its form, a way to write it, and what
that is in REST. Data for tests; kinds are letters: W interactive, T training, D distributed, I inference, J legacy Job.
"""

import json
from typing import Any, NamedTuple

ALL = "WTDIJ"
RESOURCES = {
    "W": "InteractiveWorkload",
    "T": "TrainingWorkload",
    "D": "DistributedWorkload",
    "I": "InferenceWorkload",
    "J": "Job",
}
VALUE, ITEMS, MAP, PLAIN = "value", "items", "map", "plain"


class Row(NamedTuple):
    name: str
    kinds: str
    form: str
    #: What stands below `value:`, below an item's `value:` (an object by its members), or behind the name (plain).
    sample: Any
    #: What the sample is in REST; for items: the item. Nothing where it is no part of the spec.
    want: Any
    #: Where REST has it.
    path: str = ""
    #: As the documents tell it; nothing where they name none, or where another row tells what we do instead.
    default: str = ""
    #: Of items: members without which there is none, each by all its spellings.
    needs: tuple[tuple[str, ...], ...] = ()
    #: Fields without which this one means nothing.
    beside: str = ""
    #: Kinds on which the documents disagree with themselves; they have the field here.
    also: str = ""


ROWS = (
    Row("active", ALL, VALUE, "false", None, default="true"),
    Row("allowPrivilegeEscalation", "WTDJ", VALUE, "false", False, "security.allowPrivilegeEscalation"),
    Row("annotations", ALL, MAP, "b", {"name": "k", "value": "b"}, "annotations"),
    Row("arguments", ALL, VALUE, "-x 1", "-x 1", "args"),
    Row("autoDeletionTimeAfterCompletionSeconds", "WTDJ", VALUE, "0", 0, "autoDeletionTimeAfterCompletionSeconds"),
    Row("backoffLimit", "WTDJ", VALUE, "3", 3, "backoffLimit", default="6"),
    Row("baseWorkload", "T", PLAIN, "base", None, also="WDIJ"),
    Row("capabilities", ALL, ITEMS, {"capability": "CHOWN"}, "CHOWN", "security.capabilities"),
    Row("command", ALL, VALUE, "python x.py", "python x.py", "command"),
    Row("completions", "TJ", VALUE, "4", 4, "completions", default="1"),
    Row(
        "configMapVolumes",
        ALL,
        ITEMS,
        {"name": "cm", "mountPath": "/c", "subPath": "f"},
        {"name": "k", "configMap": "cm", "mountPath": "/c", "subPath": "f"},
        "storage.configMapVolume",
        needs=(("name",), ("mountPath",)),
    ),
    Row("cpu", ALL, VALUE, "0.5", 0.5, "compute.cpuCoreRequest"),
    Row("cpuLimit", ALL, VALUE, "2", 2, "compute.cpuCoreLimit"),
    Row("createHomeDir", ALL, VALUE, "true", True, "createHomeDir"),
    Row("dropAllCapabilities", ALL, VALUE, "true", True, "security.dropAllCapabilities", default="false"),
    Row("environment", ALL, MAP, "b", {"name": "k", "value": "b"}, "environmentVariables"),
    Row(
        "exposedUrls",
        "WTDI",
        ITEMS,
        {"container": 80, "url": "http://a", "authorizedUsers": ["ann"], "toolType": "t", "toolName": "n"},
        {
            "name": "k",
            "container": 80,
            "url": "http://a",
            "authorizedUsers": ["ann"],
            "toolType": "t",
            "toolName": "n",
        },
        "exposedUrls",
        needs=(("container",),),
        also="J",
    ),
    Row(
        "extendedResources",
        ALL,
        ITEMS,
        {"name": "ext/a", "quantity": "5"},
        {"resource": "ext/a", "quantity": "5"},
        "compute.extendedResources",
        needs=(("name",),),
    ),
    Row(
        "gitSync",
        ALL,
        ITEMS,
        {
            "repository": "https://x/r",
            "directory": "/d",
            "branch": "b",
            "rev": "v",
            "secretName": "s",
            "username": "u",
            "password": "p",
        },
        {
            "name": "k",
            "repository": "https://x/r",
            "path": "/d",
            "branch": "b",
            "revision": "v",
            "secretRef": {"name": "s", "secretKeyOfUser": "u", "secretKeyOfPassword": "p"},
        },
        "storage.git",
        needs=(("repository",), ("directory", "path")),
    ),
    Row("gpu", ALL, VALUE, "0.5", 0.5, "compute.gpuPortionRequest"),
    Row("gpuDevices", ALL, VALUE, "2", 2, "compute.gpuDevicesRequest"),
    Row("gpuLimit", ALL, VALUE, "0.5", 0.5, "compute.gpuPortionLimit", beside="gpu: {value: 0.2}"),
    Row("gpuMemory", ALL, VALUE, "20M", "20M", "compute.gpuMemoryRequest"),
    Row("gpuMemoryLimit", ALL, VALUE, "20M", "20M", "compute.gpuMemoryLimit", beside="gpuMemory: {value: 10M}"),
    Row("hostIpc", "WTDJ", VALUE, "true", True, "security.hostIpc", default="false", also="I"),
    Row("hostNetwork", "WTDJ", VALUE, "true", True, "security.hostNetwork", default="false", also="I"),
    Row("image", ALL, VALUE, "ubuntu:latest", "ubuntu:latest", "image"),
    Row("imagePullPolicy", ALL, VALUE, "ifNotPresent", "IfNotPresent", "imagePullPolicy"),
    Row("labels", ALL, MAP, "b", {"name": "k", "value": "b"}, "labels"),
    Row("largeShm", ALL, VALUE, "true", True, "compute.largeShmRequest"),
    Row("maxScale", "I", VALUE, "3", 3, "autoscaling.maxReplicas"),
    Row("memory", ALL, VALUE, "1G", "1G", "compute.cpuMemoryRequest"),
    Row("memoryLimit", ALL, VALUE, "2G", "2G", "compute.cpuMemoryLimit"),
    Row("metric", "I", VALUE, "throughput", "throughput", "autoscaling.metric", default="concurrency"),
    Row("migProfile", ALL, VALUE, "1g.5gb", "1g.5gb", "compute.migProfile"),
    Row("minScale", "I", VALUE, "1", 1, "autoscaling.minReplicas"),
    Row(
        "mountPropagation",
        "WTDJ",
        VALUE,
        "true",
        [{"name": "v", "path": "/h", "mountPath": "/m", "mountPropagation": "HostToContainer"}],
        "storage.hostPath",
        beside="volumes: {items: {v: {value: {path: /h, mountPath: /m}}}}",
        also="I",
    ),
    Row("mpi", "TD", VALUE, "true", "MPI", "distributedFramework"),
    Row("name", ALL, VALUE, "called", None),
    Row("namePrefix", ALL, VALUE, "called", None),
    Row(
        "nfs",
        ALL,
        ITEMS,
        {"sourcePath": "/s", "nfsServer": "h", "targetPath": "/t", "readOnly": False},
        {"name": "k", "path": "/s", "server": "h", "mountPath": "/t", "readOnly": False},
        "storage.nfs",
        needs=(("sourcePath",), ("nfsServer",), ("targetPath",)),
    ),
    Row("nodePool", "T", VALUE, "a", ["a"], "nodePools"),
    Row("nodePools", ALL, VALUE, "'a, b'", ["a", "b"], "nodePools"),
    Row("nodeType", ALL, VALUE, "a100", "a100", "nodeType"),
    Row("parallelism", "TJ", VALUE, "2", 2, "parallelism", beside="completions: {value: 2}"),
    Row("podAffinity", ALL, VALUE, "false", None, "podAffinity"),
    Row(
        "podAffinitySchedulingRule",
        "WTIJ",
        VALUE,
        "hard",
        "Required",
        "podAffinity.type",
        beside="podAffinity: {value: true}\npodAffinityTopology: {value: z}",
    ),
    Row(
        "podAffinityTopology",
        "WTIJ",
        VALUE,
        "zone",
        "zone",
        "podAffinity.key",
        beside="podAffinity: {value: true}\npodAffinitySchedulingRule: {value: soft}",
    ),
    Row(
        "ports",
        ALL,
        ITEMS,
        {"container": 80, "external": 30080, "serviceType": "NodePort", "toolType": "t", "toolName": "n"},
        {
            "name": "k",
            "container": 80,
            "external": 30080,
            "serviceType": "NodePort",
            "toolType": "t",
            "toolName": "n",
        },
        "ports",
        needs=(("container",),),
    ),
    Row("preemptible", "W", VALUE, "true", "preemptible", "preemptibility"),
    Row("preemptionLimit", "T", VALUE, "2", 2, "preemptionLimit"),
    Row("processes", "TD", VALUE, "4", 4, "numWorkers"),
    Row(
        "pvcs",
        ALL,
        ITEMS,
        {
            "claimName": "c",
            "path": "/p",
            "size": "1G",
            "storageClass": "s",
            "readOnly": False,
            "ephemeral": False,
            "readWriteOnce": True,
            "readOnlyMany": False,
            "readWriteMany": False,
            "existingPvc": False,
        },
        {
            "name": "k",
            "claimName": "c",
            "path": "/p",
            "readOnly": False,
            "ephemeral": False,
            "existingPvc": False,
            "claimInfo": {
                "size": "1G",
                "storageClass": "s",
                "accessModes": {"readWriteOnce": True, "readOnlyMany": False, "readWriteMany": False},
            },
        },
        "storage.pvc",
        needs=(("path",), ("size",)),
    ),
    Row("readOnlyRootFilesystem", ALL, VALUE, "true", True, "security.readOnlyRootFilesystem", default="false"),
    Row(
        "readinessProbe",
        ALL,
        VALUE,
        "{httpGet: {path: /h, port: 80}}",
        {"handler": {"httpGet": {"path": "/h", "port": 80}}},
        "probes.readiness",
    ),
    Row("runAsGid", ALL, VALUE, "30", 30, "security.runAsGid", beside="runAsUser: {value: true}"),
    Row("runAsNonRoot", ALL, VALUE, "true", True, "security.runAsNonRoot"),
    Row("runAsUid", ALL, VALUE, "500", 500, "security.runAsUid", beside="runAsUser: {value: true}"),
    Row("runAsUser", ALL, VALUE, "true", "fromIdpToken", "security.uidGidSource"),
    Row(
        "s3",
        ALL,
        ITEMS,
        {"bucket": "b", "path": "/p", "url": "https://u", "key": "i", "secret": "j", "secretName": "s"},
        {
            "name": "k",
            "bucket": "b",
            "path": "/p",
            "url": "https://u",
            "accessKeySecret": "s",
            "secretKeyOfAccessKeyId": "i",
            "secretKeyOfSecretKey": "j",
        },
        "storage.s3",
        needs=(("bucket",), ("path",)),
    ),
    Row("seccompProfileType", ALL, VALUE, "Unconfined", "Unconfined", "security.seccompProfileType"),
    Row(
        "serviceType",
        ALL,
        VALUE,
        "NodePort",
        [{"name": "p", "container": 80, "serviceType": "NodePort"}],
        "ports",
        beside="ports: {items: {p: {value: {container: 80}}}}",
    ),
    Row("slotsPerWorker", "TD", VALUE, "2", 2, "slotsPerWorker"),
    Row("stdin", ALL, VALUE, "true", True, "stdin"),
    Row("supplementalGroups", ALL, VALUE, "2;3", "2,3", "security.supplementalGroups"),
    Row("target", "I", VALUE, "80", 80, "autoscaling.metricThreshold", beside="metric: {value: concurrency}"),
    Row("terminateAfterPreemption", "WTJ", VALUE, "true", True, "terminateAfterPreemption", default="false"),
    Row(
        "tolerations",
        ALL,
        ITEMS,
        {"key": "t", "operator": "Equal", "value": "v", "effect": "NoExecute", "seconds": 5},
        {"name": "k", "key": "t", "operator": "Equal", "value": "v", "effect": "NoExecute", "seconds": 5},
        "tolerations",
        needs=(("key",), ("operator",), ("effect",)),
    ),
    Row("tty", ALL, VALUE, "true", True, "tty", beside="stdin: {value: true}"),
    Row("usage", ALL, PLAIN, "Submit", None, default="Submit"),
    Row("username", ALL, VALUE, "Ann", "Ann", "username"),
    Row(
        "volumes",
        ALL,
        ITEMS,
        {"path": "/h", "mountPath": "/m", "readOnly": False, "mountPropagation": "None"},
        {"name": "k", "path": "/h", "mountPath": "/m", "readOnly": False, "mountPropagation": "None"},
        "storage.hostPath",
        needs=(("path",), ("mountPath",)),
    ),
    Row("workingDir", ALL, VALUE, "/w", "/w", "workingDir"),
)
#: What the system alone writes; the explain page lists it.
SYSTEM = (Row("ingressUrl", "T", VALUE, "u", None), Row("userId", "T", VALUE, "u", None))
EVERY = tuple(sorted((*ROWS, *SYSTEM)))


def written(row: Row, form: str = "", sample: Any = None) -> str:
    """The field as it is written; in another form where one is given."""
    given = row.sample if sample is None else sample
    text = given if isinstance(given, str) else json.dumps(given)
    shapes = {VALUE: f"{{value: {text}}}", PLAIN: text}
    return f"{row.name}: {shapes.get(form or row.form, f'{{items: {{k: {{value: {text}}}}}}}')}"


def spec_of(row: Row, field: str) -> str:
    """A whole spec around the field, with what it needs beside it."""
    lines = [field]
    if row.name not in ("name", "namePrefix"):
        lines.append("name: {value: x}")
    if row.name != "image":
        lines.append("image: {value: i}")
    return "\n".join([*lines, *([row.beside] if row.beside else [])])
