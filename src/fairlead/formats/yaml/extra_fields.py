"""Where workload YAML differs from REST: fields of its own, and declared fields that mean something else.

Data only, for `fields.py`, which joins it with the declarations. `conversions.py` and `kind_conversions.py` implement
the fields.
"""

from typing import Any

import msgspec

from fairlead.formats.plain import Plain
from fairlead.model.spec.fields import FieldInfo
from fairlead.model.spec.network import ServiceType

VALUE, ITEMS, MAP, PLAIN = "value", "items", "map", "plain"
#: Ways to offer a port that are not service types in REST.
EXTERNAL_URL, SERVING_PORT = "ExternalUrl", "ServingPort"


class YamlField(msgspec.Struct, frozen=True, kw_only=True):
    """One field below `spec`, or one member of an item."""

    name: str
    also: tuple[str, ...] = ()
    kinds: str = "WTDIJ"
    #: value: `name: {value: X}`; items: `name: {items: {KEY: {value: {…}}}}`; map: `{items: {KEY: {value: X}}}`;
    #: plain: `name: X`.
    form: str = VALUE
    #: boolean, integer, number, quantity, string, list or object; `limit` for what is a number or a quantity, `mark`
    #: for what is true, false or an object.
    type: str = "string"
    choices: tuple[str, ...] = ()
    #: Other names of the choices, each with its choice; and the same in lower case.
    choice_aliases: dict[str, str] = {}
    meant: dict[str, str] = {}
    #: Dotted REST path below the spec (or below the item); empty if REST has no such field.
    path: str = ""
    #: Further places below the spec that it may set; and its place in a request outside of the spec.
    sets: tuple[str, ...] = ()
    outside_spec: tuple[str, ...] = ()
    about: FieldInfo
    #: The members of an item; and the same by every accepted spelling in lower case.
    members: tuple["YamlField", ...] = ()
    spelt: dict[str, "YamlField"] = {}
    #: The member of the item that KEY is in REST; empty if REST has none.
    key: str = ""
    #: For lists of plain values that are written as items: the member with the value.
    member: str = ""
    #: A reader and a writer convert it, together with other fields.
    is_paired: bool = False
    #: Only the system writes it.
    is_system: bool = False
    schema: Plain = {}
    shape: Any = None


def _extra(name: str, text: str, kinds: str = "WTDIJ", **more: Any) -> YamlField:
    known = {key: more.pop(key) for key in ("default_text", "mandatory", "unit") if key in more}
    return YamlField(name=name, kinds=kinds, about=FieldInfo(text=text, **known), is_paired=True, **more)


_MPI = "makes the workload an MPI job"
#: Fields that are not one field of REST. `gpu` and `gpuLimit` are declared, and read together with related fields.
EXTRAS = (
    _extra(
        "active",
        "Whether the workload runs; false suspends it.",
        type="boolean",
        default_text="true",
        outside_spec=("POST …/suspend", "POST …/resume"),
    ),
    _extra(
        "baseWorkload",
        "The name of a workload with usage Template, in the same namespace or else in namespace runai. Fields "
        "that are not given here come from it, items one by one.",
        form=PLAIN,
        outside_spec=("templateId",),
    ),
    _extra("name", "The workload's name. Exactly one of name and namePrefix is required.", outside_spec=("name",)),
    _extra(
        "namePrefix",
        "The prefix of the workload's name; random characters are added to it.",
        outside_spec=("name", "useGivenNameAsPrefix"),
    ),
    _extra(
        "usage",
        "Submit runs the workload; Template only stores it for other workloads to use as baseWorkload.",
        form=PLAIN,
        choices=("Submit", "Template"),
        default_text="Submit",
    ),
    _extra(
        "runAsUser",
        "Runs the process as runAsUid and runAsGid, or else as the user of the caller's identity token.",
        type="boolean",
        default_text="the image's own user",
        sets=("security.uidGidSource",),
    ),
    _extra(
        "serviceType",
        "The service type of ports that do not set their own.",
        choices=tuple(ServiceType.__args__),  # type: ignore[attr-defined]  # of a Literal
        default_text="ClusterIP",
        sets=("ports[].serviceType",),
    ),
    _extra(
        "mountPropagation",
        "Whether later mounts below the node's paths appear in the container, for volumes that do not set it.",
        type="boolean",
        default_text="false",
        sets=("storage.hostPath[].mountPropagation",),
    ),
    _extra(
        "nodePool", "The node pool to use. Deprecated: use nodePools, which takes several.", "T", sets=("nodePools",)
    ),
    _extra("userId", "The subject of the owner's token; the system writes it.", "T", is_system=True),
    _extra("ingressUrl", "For the system's own use.", "T", is_system=True),
    # --- MPI, on a training too
    _extra("mpi", f"True {_MPI}: a launcher and workers.", "TD", type="mark", sets=("distributedFramework",)),
    _extra(
        "processes",
        f"The total number of processes; {_MPI} with as many workers as needed for them.",
        "TD",
        type="integer",
        sets=("distributedFramework", "numWorkers"),
    ),
    _extra(
        "slotsPerWorker",
        f"The number of processes on each worker; {_MPI}.",
        "TD",
        type="integer",
        default_text="1",
        sets=("slotsPerWorker",),
    ),
    # --- Distributed workloads
    _extra(
        "noMaster",
        "True: workers only, without a master.",
        "D",
        type="boolean",
        default_text="false",
        sets=("masterSpecSameAsWorker",),
    ),
    _extra(
        "nonPreemptible",
        "True: never preempted, and so only within the project's quota.",
        "D",
        type="boolean",
        default_text="by the priority",
        sets=("preemptibility",),
    ),
    _extra(
        "mpiJob",
        "Settings of an MPI job: slotsPerWorker, cleanPodPolicy, sshAuthMountPath, launcherCreationPolicy.",
        "D",
        type="object",
        sets=("slotsPerWorker", "cleanPodPolicy", "sshAuthMountPath", "mpiLauncherCreationPolicy"),
    ),
    _extra(
        "pyTorchJob",
        "Settings of a PyTorch job: elasticPolicy with minReplicas and maxReplicas.",
        "D",
        type="object",
        sets=("minReplicas", "maxReplicas"),
    ),
    _extra(
        "runPolicy",
        "Run policy of the job: cleanPodPolicy, backoffLimit, ttlSecondsAfterFinished.",
        "D",
        type="object",
        sets=("cleanPodPolicy", "backoffLimit", "autoDeletionTimeAfterCompletionSeconds"),
    ),
    # --- Interactive workloads
    _extra(
        "preemptible",
        "True: can go over the project's quota, and can then be preempted.",
        "W",
        type="boolean",
        default_text="by the priority",
        sets=("preemptibility",),
    ),
    _extra(
        "jupyter",
        "True: a Jupyter notebook behind a URL. Image, command and arguments have defaults.",
        "W",
        type="boolean",
        default_text="false",
        sets=("image", "command", "args", "exposedUrls"),
    ),
    _extra("notebookToken", "The token that the notebook asks for; only with jupyter.", "W", sets=("args",)),
    _extra(
        "tensorboard",
        "True: a URL for TensorBoard, which is started if no command is given.",
        "W",
        type="boolean",
        default_text="false",
        sets=("image", "command", "args", "exposedUrls"),
    ),
    _extra(
        "tensorboardLogdir",
        "The folder that TensorBoard shows; only with tensorboard. Programs find it in TENSORBOARD_LOGDIR.",
        "W",
        default_text="/logs",
        sets=("args", "environmentVariables"),
    ),
    # --- Inference workloads
    _extra("metricName", "The name of the metric, with metric custom.", "I", sets=("autoscaling.metric",)),
    _extra(
        "class",
        "The class of Knative's autoscaler, as the annotation autoscaling.knative.dev/class.",
        "I",
        sets=("annotations",),
    ),
    _extra(
        "isPrivateServiceUrl",
        "True: the serving port is reachable only from this cluster.",
        "I",
        type="boolean",
        default_text="false",
        sets=("servingPort.clusterLocalAccessOnly",),
    ),
)
#: Declared fields whose meaning depends on other fields; the second text is their type in YAML.
PAIRED = {
    "compute.gpuPortionRequest": "number",
    "compute.gpuPortionLimit": "limit",
    "podAffinity": "boolean",
    "podAffinity.type": "string",
    "podAffinity.key": "string",
    "probes.readiness": "object",
    "security.runAsUid": "integer",
    "security.runAsGid": "integer",
    "numWorkers": "integer",
    "distributedFramework": "string",
    "autoscaling.minReplicas": "integer",
    "autoscaling.maxReplicas": "integer",
    "autoscaling.metric": "string",
    "autoscaling.metricThreshold": "integer",
}
#: What they set in addition to their own REST field.
SETS = {
    "compute.gpuPortionRequest": ("compute.gpuDevicesRequest", "compute.gpuRequestType"),
    "compute.gpuPortionLimit": ("compute.gpuMemoryLimit",),
    "compute.gpuMemoryRequest": ("compute.gpuRequestType",),
    "ports": ("exposedUrls", "servingPort"),
    "environmentVariables": ("environmentVariables[].secret.name", "environmentVariables[].secret.key"),
}
CHOICES = {
    "podAffinity.type": ("hard", "soft"),
    "autoscaling.metric": ("concurrency", "throughput", "latency", "custom"),
}
#: Other names of choices, by REST path.
CHOICE_ALIASES = {
    "podAffinity.type": {"required": "hard", "preferred": "soft"},
    "distributedFramework": {
        "MPIJob": "MPI",
        "PyTorchJob": "PyTorch",
        "TensorFlow": "TF",
        "TFJob": "TF",
        "XGBoostJob": "XGBoost",
        "JAXJob": "JAX",
    },
}
#: Their meaning here, if it differs from that of their REST field; and their defaults.
TEXTS = {
    "compute.gpuPortionRequest": "GPU devices: a fraction of one between 0 and 1, or a whole number. "
    "With a fraction, gpuDevices sets the number of devices.",
    "compute.gpuPortionLimit": "The most that the pod can use while others leave it free: a number is a fraction of "
    "each device, at least gpu; a quantity such as 20M is memory of each device, like gpuMemoryLimit.",
    "compute.gpuMemoryRequest": "Memory of a GPU device; not together with gpu.",
    "podAffinity": "Places the workload's pods near each other, as podAffinitySchedulingRule and podAffinityTopology "
    "say.",
    "podAffinity.type": "hard if it is required, soft if it is preferred; only with podAffinity.",
    "podAffinity.key": "The node label whose value the workload's pods share; only with podAffinity.",
    "probes.readiness": "When the container is ready for traffic, written as a Kubernetes readiness probe.",
    "security.runAsUid": "The user id; only with runAsUser.",
    "security.runAsGid": "The group id; only with runAsUser.",
    "nodePools": "Node pools to try in this order, separated by spaces or commas.",
    "autoscaling.metric": "The metric of the load; custom is the metric that metricName names.",
}
DEFAULTS = {
    "autoscaling.minReplicas": "0 with the metrics concurrency and throughput, otherwise 1",
    "autoscaling.maxReplicas": "1, or minScale if that is more",
    "autoscaling.metric": "concurrency",
    "autoscaling.metricThreshold": "100 with concurrency, 200 with throughput",
}
#: Choices and members of items that REST does not have, by the item's YAML name.
MEMBER_CHOICES = {("ports", "serviceType"): (EXTERNAL_URL, SERVING_PORT)}
#: Defaults of members that REST requires.
MEMBER_DEFAULTS = {("ports", "serviceType"): "serviceType of the spec, otherwise ClusterIP"}
MORE_MEMBERS = {
    "ports": (
        YamlField(
            name="protocol",
            path="protocol",
            choices=("http", "grpc"),
            about=FieldInfo(text="The protocol of the serving port.", default_text="http"),
        ),
    ),
}
