"""What workload YAML has otherwise than REST: fields of its own, and declared ones that mean something else there.

Data only, for `yaml_fields.py`, which joins it to the declarations. What the fields do is in `yaml_pairs.py` and
`yaml_pairs_kinds.py`.
"""

from typing import Any

import msgspec

from fairlead.model.spec.fields import FieldInfo
from fairlead.model.spec.network import ServiceType

VALUE, ITEMS, MAP, PLAIN = "value", "items", "map", "plain"
#: Ways to offer a port that are no service types in REST.
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
    #: Other words for the choices, each with the choice it means; and the same in small letters.
    words: dict[str, str] = {}
    meant: dict[str, str] = {}
    #: Dotted REST path below the spec (or below the item); empty where REST has no such field.
    path: str = ""
    #: Further places below the spec that it may set; and what it is of a request beside the spec.
    sets: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    about: FieldInfo
    #: Of an item: what it may hold; and the same by every accepted spelling in small letters.
    members: tuple["YamlField", ...] = ()
    spelt: dict[str, "YamlField"] = {}
    #: The member of the item that KEY is in REST; empty where REST has no place for it.
    key: str = ""
    #: For lists of plain values that are written as items: the member that holds the value.
    member: str = ""
    #: Its meaning is worked out by a pair of functions, together with others.
    is_paired: bool = False
    #: Only the system writes it.
    is_system: bool = False
    schema: dict[str, Any] = {}
    shape: Any = None


def _extra(name: str, text: str, kinds: str = "WTDIJ", **more: Any) -> YamlField:
    known = {key: more.pop(key) for key in ("default_text", "mandatory", "unit") if key in more}
    return YamlField(name=name, kinds=kinds, about=FieldInfo(text=text, **known), is_paired=True, **more)


_MPI = "makes the workload an MPI job"
#: What REST has not as one field. `gpu` and `gpuLimit` are declared, and read together with their neighbours.
EXTRAS = (
    _extra(
        "active",
        "Whether the workload runs; false suspends it.",
        type="boolean",
        default_text="true",
        beside=("POST …/suspend", "POST …/resume"),
    ),
    _extra(
        "baseWorkload",
        "The name of a workload with usage Template, in the same namespace or else in namespace runai: what this one "
        "does not give comes from there, items one by one.",
        form=PLAIN,
        beside=("templateId",),
    ),
    _extra("name", "The workload's name. Exactly one of name and namePrefix is given.", beside=("name",)),
    _extra(
        "namePrefix",
        "The beginning of the workload's name; characters are added to it.",
        beside=("name", "useGivenNameAsPrefix"),
    ),
    _extra(
        "usage",
        "Submit runs the workload; Template only keeps it for others to name as baseWorkload.",
        form=PLAIN,
        choices=("Submit", "Template"),
        default_text="Submit",
    ),
    _extra(
        "runAsUser",
        "Runs the process as runAsUid and runAsGid, or without those as the user of the caller's identity token.",
        type="boolean",
        default_text="the image's own user",
        sets=("security.uidGidSource",),
    ),
    _extra(
        "serviceType",
        "How ports are offered that name no service type of their own.",
        choices=tuple(ServiceType.__args__),  # type: ignore[attr-defined]  # of a Literal
        default_text="ClusterIP",
        sets=("ports[].serviceType",),
    ),
    _extra(
        "mountPropagation",
        "Whether later mounts below the node's paths appear in the container, for volumes that do not say it.",
        type="boolean",
        default_text="false",
        sets=("storage.hostPath[].mountPropagation",),
    ),
    _extra("nodePool", "The one node pool to use. Deprecated: nodePools takes several.", "T", sets=("nodePools",)),
    _extra("userId", "The subject of the owner's token; the system writes it.", "T", is_system=True),
    _extra("ingressUrl", "For the system's own use.", "T", is_system=True),
    # --- MPI, on a training too
    _extra("mpi", f"True {_MPI}: a launcher and workers.", "TD", type="mark", sets=("distributedFramework",)),
    _extra(
        "processes",
        f"How many processes there are in all; {_MPI} with as many workers as it takes slots for them.",
        "TD",
        type="integer",
        sets=("distributedFramework", "numWorkers"),
    ),
    _extra(
        "slotsPerWorker",
        f"How many processes start on each worker; {_MPI}.",
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
        "True: never preempted, and so within the project's quota only.",
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
        "How the job ends: cleanPodPolicy, backoffLimit, ttlSecondsAfterFinished.",
        "D",
        type="object",
        sets=("cleanPodPolicy", "backoffLimit", "autoDeletionTimeAfterCompletionSeconds"),
    ),
    # --- Interactive workloads
    _extra(
        "preemptible",
        "True: may go over the project's quota, and be preempted for it.",
        "W",
        type="boolean",
        default_text="by the priority",
        sets=("preemptibility",),
    ),
    _extra(
        "jupyter",
        "True: a Jupyter notebook behind a URL. Image, command and arguments are filled in where they are not given.",
        "W",
        type="boolean",
        default_text="false",
        sets=("image", "command", "args", "exposedUrls"),
    ),
    _extra("notebookToken", "What the notebook asks for at its door; only with jupyter.", "W", sets=("args",)),
    _extra(
        "tensorboard",
        "True: a URL for TensorBoard, which is started where no command is given.",
        "W",
        type="boolean",
        default_text="false",
        sets=("image", "command", "args", "exposedUrls"),
    ),
    _extra(
        "tensorboardLogdir",
        "The folder whose records TensorBoard shows; only with tensorboard. Programs find it in TENSORBOARD_LOGDIR.",
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
        "True: the serving port is reached from this cluster only.",
        "I",
        type="boolean",
        default_text="false",
        sets=("servingPort.clusterLocalAccessOnly",),
    ),
)
#: Declared fields whose meaning depends on their neighbours; the second word is their type in YAML.
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
#: What they set besides their own REST field.
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
#: Other words for choices, by REST path.
WORDS = {
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
#: What they mean here, where that is not what their REST field means; and what holds without them.
TEXTS = {
    "compute.gpuPortionRequest": "GPU devices: between 0 and 1 a part of one, otherwise a whole number of them. "
    "Beside a part, gpuDevices says of how many devices.",
    "compute.gpuPortionLimit": "How far the pod may go while others leave it free: a number is a part of each device, "
    "at least gpu; a quantity such as 20M is memory of each device, as gpuMemoryLimit.",
    "compute.gpuMemoryRequest": "Memory of a GPU device; not together with gpu.",
    "podAffinity": "Places the workload's pods near each other, as podAffinitySchedulingRule and podAffinityTopology "
    "say.",
    "podAffinity.type": "hard where it must hold, soft where it is preferred; only with podAffinity.",
    "podAffinity.key": "The node label whose value the workload's pods share; only with podAffinity.",
    "probes.readiness": "When the container counts as ready for traffic, written as Kubernetes' readiness probe.",
    "security.runAsUid": "The user id; it counts only with runAsUser.",
    "security.runAsGid": "The group id; it counts only with runAsUser.",
    "nodePools": "Node pools to try, the first one first, separated by spaces or commas.",
    "autoscaling.metric": "What the load is measured by; custom is a metric named by metricName.",
}
DEFAULTS = {
    "autoscaling.minReplicas": "0 with the metrics concurrency and throughput, otherwise 1",
    "autoscaling.maxReplicas": "1, or minScale where that is more",
    "autoscaling.metric": "concurrency",
    "autoscaling.metricThreshold": "100 with concurrency, 200 with throughput",
}
#: Choices and members of items that REST has not, by the item's YAML name.
MEMBER_CHOICES = {("ports", "serviceType"): (EXTERNAL_URL, SERVING_PORT)}
#: What holds without a member that REST wants to be given.
MEMBER_DEFAULTS = {("ports", "serviceType"): "as serviceType of the spec says, otherwise ClusterIP"}
MORE_MEMBERS = {
    "ports": (
        YamlField(
            name="protocol",
            path="protocol",
            choices=("http", "grpc"),
            about=FieldInfo(text="What is spoken at the serving port.", default_text="http"),
        ),
    ),
}
