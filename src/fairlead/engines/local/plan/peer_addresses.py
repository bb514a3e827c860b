"""Where pods of one workload find each other: fills in `{host:NAME}` and the like in their variables.

Called by the engine before a pod starts. Pods with networks of their own have names and may all use the same port;
pods that share the machine's are all at its loopback address, each with a port of its own.
"""

import re
import zlib

import msgspec

from fairlead.engines.local.plan.remote_exec import AGENT
from fairlead.model.pods.podset import PodSpec

_WORD = re.compile(r"\{(host|fqdn):([^{}]+)\}|\{port:(\d+)\+(\d+)\}|\{agent\}")
_LOOPBACK = "127.0.0.1"
#: Below those that the kernel and NodePorts give out.
_FIRST_PORT, _PORTS = 20_000, 9_000


def fill_in(pod: PodSpec, has_own_network: bool) -> PodSpec:
    """The pod with its variables as its program is to see them."""
    if not pod.variables:
        return pod
    base = _FIRST_PORT + zlib.crc32(pod.workload_id.encode()) % _PORTS

    def replace(match: re.Match[str]) -> str:
        form, name, port, number = match.groups()
        if name is not None and has_own_network:
            return name if form == "host" else f"{name}.{pod.workload_name}.{pod.namespace}"
        if name is not None:
            return _LOOPBACK
        if port is None:
            return AGENT
        return str(port) if has_own_network else str(base + int(number))

    filled = {name: _WORD.sub(replace, value) for name, value in pod.variables.items()}
    return msgspec.structs.replace(pod, variables=filled)
