"""Computes the environment and the arguments of a pod's command. References are resolved by a function handed in."""

import re
from collections.abc import Awaitable, Callable, Mapping

from fairlead.engines.local.linux import procfs
from fairlead.engines.local.settings import Identity
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import ContainerCompute
from fairlead.model.pods.podset import EnvironmentVariable, PodSpec, Request

#: From a variable that refers to a secret, config map or credential to its value; raises Refused with the reason.
Resolve = Callable[[EnvironmentVariable], str]
#: Reads everything that a pod's variables refer to, before its start.
LoadReferences = Callable[[PodSpec], Awaitable[Resolve]]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEYED_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
#: Two dollar signs, perhaps before a bracket; a reference; in commands also one in braces.
_REFERENCE = re.compile(r"\$\$(?P<escaped>[({])?|\$\((?P<name>[A-Za-z_][\w.-]*)\)|\$\{(?P<braced>[A-Za-z_]\w*)\}")
_VALUE_REFERENCE = re.compile(r"\$\$(?P<escaped>\()?|\$\((?P<name>[A-Za-z_][\w.-]*)\)(?P<braced>)")


async def refuse_references(pod: PodSpec) -> Resolve:
    """The references of an engine that has no way to resolve any."""

    def refuse(variable: EnvironmentVariable) -> str:
        source = "secret" if variable.secret else "config map" if variable.config_map else "user credential"
        named = variable.secret or variable.config_map or variable.user_credential or ("", "")
        raise Refused(
            f"environment variable {variable.name} takes its value from {source} '{named[0]}', which does not exist"
        )

    return refuse


def render_environment(
    pod: PodSpec, base: dict[str, str], address: str, device_memory: int, resolve: Resolve
) -> dict[str, str]:
    """Base, then the variables of its set, the user's in their order, who the pod is, and its share of the node.

    As in Kubernetes, a value can refer to variables before it: `$(NAME)`.
    """
    references = dict(pod.variables)
    for variable in pod.container.environment:
        value = _value(variable, pod, address, resolve)
        references[variable.name] = value if variable.value is None else _expand(_VALUE_REFERENCE, value, references)
    variables = base | references | pod.identity
    variables["NODE_NAME"] = pod.node
    variables |= _devices(pod.request, pod.gpu_devices, device_memory)
    limit = _memory_limit(pod.container.fields.compute, device_memory)
    if limit:
        variables["RUNAI_GPU_MEMORY_LIMIT"] = limit
    variables[procfs.MARKER] = f"{pod.pod_id}.{pod.attempt}"
    return variables


def render_base(user: Identity, tty: bool, of_caller: Mapping[str, str]) -> dict[str, str]:
    """What every pod has, then what its caller's shell had."""
    base = {
        "PATH": PATH,
        "HOME": user.home,
        "USER": user.login,
        "LOGNAME": user.login,
        "SHELL": user.shell,
        "LANG": "C.UTF-8",
    }
    return {**base, **({"TERM": "xterm-256color"} if tty else {}), **of_caller}


def _value(variable: EnvironmentVariable, pod: PodSpec, address: str, resolve: Resolve) -> str:
    if variable.value is not None:
        return variable.value
    if variable.pod_field is not None:
        return pod_field(pod, variable.pod_field, address)
    return resolve(variable)


def pod_field(pod: PodSpec, path: str, address: str) -> str:
    """A downward field as Kubernetes names it; what is not set there is empty.

    `address` is the pod's and, where that is another, behind a comma its host's.
    """
    own, _, host = address.partition(",")
    keyed = _KEYED_FIELD.fullmatch(path)
    if keyed:
        pairs = pod.container.fields.labels if keyed[1] == "labels" else pod.container.fields.annotations
        return next((pair.value or "" for pair in pairs if pair.name == keyed[2]), "")
    fields = {
        "metadata.name": pod.pod_name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.pod_id,
        "spec.nodeName": pod.node,
        "spec.serviceAccountName": "default",
        "status.podIP": own,
        "status.podIPs": own,
        "status.hostIP": host or own,
        "status.hostIPs": host or own,
    }
    if path not in fields:
        known = ", ".join([*fields, "metadata.labels['name']", "metadata.annotations['name']"])
        raise Refused(f"'{path}' is not a field of a pod; known are {known}")
    return fields[path]


def _memory_limit(compute: ContainerCompute, device_memory: int) -> str:
    """How much memory of each device the pod may use: as it was given, or in bytes if a portion was."""
    if compute.gpu_memory_limit:
        return compute.gpu_memory_limit
    portion = compute.gpu_portion_limit
    return str(int(portion * device_memory)) if portion and device_memory else ""


def _devices(request: Request, devices: tuple[int, ...], device_memory: int) -> dict[str, str]:
    if not devices:
        # An empty list hides the devices that others were given.
        return {"RUNAI_NUM_OF_GPUS": "0", "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    names = ",".join(map(str, devices))
    portion = request.gpu_portion / 1000
    if request.gpu_memory_bytes and device_memory:
        portion = max(0.001, round(request.gpu_memory_bytes / device_memory, 3))
    # CUDA would number them by their speed, and not as the scheduler and the drivers do.
    visible = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": names}
    if portion < 1:
        share = f"{portion * len(devices):g}"
        return {**visible, "RUNAI_NUM_OF_GPUS": share, "GPU_PORTION": f"{portion:g}"}
    return {**visible, "RUNAI_NUM_OF_GPUS": str(len(devices)), "GPU_PORTION": "1"}


def expand(words: tuple[str, ...], variables: Mapping[str, str]) -> list[str]:
    """`$(NAME)` and `${NAME}` by their values; `$$(` and `$${` escape, an unknown name stays as written.

    Kubernetes makes one of every two dollar signs; here a shell's `$$` that escapes nothing stays its process id.
    """

    return [_expand(_REFERENCE, word, variables) for word in words]


def _expand(reference: re.Pattern[str], text: str, variables: Mapping[str, str]) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return f"${match['escaped']}" if match["escaped"] else "$$"
        return variables.get(match["name"] or match["braced"], match[0])

    return reference.sub(replace, text)
