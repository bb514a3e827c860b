"""The vocabulary between kinds and engines: a kind says which pods its spec means, an engine runs them.

Neither `scheduling` nor an engine knows kinds; they see only what stands here.
"""

from enum import StrEnum
from typing import Any

import msgspec


class RestartPolicy(StrEnum):
    """What happens to a container that ends."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    #: A failed pod is replaced by a new one, within the backoff limit.
    NEVER = "Never"


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one pod asks of a node. Exactly one way to ask for GPUs: whole, portion, memory or MIG."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    #: Number of devices; with portion or memory, that share of each of them.
    gpu_devices: int = 0
    #: Share of each device in thousandths; 1000 = whole devices.
    gpu_portion: int = 1000
    #: Memory per device; 0 unless asked for by memory.
    gpu_memory_bytes: int = 0
    #: Extended resources by name, MIG profiles (`nvidia.com/mig-1g.5gb`) among them.
    extended: dict[str, int] = {}


class EnvironmentVariable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variable with exactly one source; references are resolved by the engine at the pod's start."""

    name: str
    value: str | None = None
    #: (object name, key)
    secret: tuple[str, str] | None = None
    config_map: tuple[str, str] | None = None
    user_credential: tuple[str, str] | None = None
    pod_field: str | None = None


class Container(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What runs in a pod, in plain words: the spec's fields after defaults, already split and parsed."""

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    environment: tuple[EnvironmentVariable, ...] = ()
    tty: bool = False
    stdin: bool = False
    termination_grace_seconds: int = 30
    cpu_limit_milli: int | None = None
    memory_limit_bytes: int | None = None
    #: The rest of the pod's fields in canonical form (compute extras, storage, security, probes, ports, labels …),
    #: as plain data keyed by the spec's REST names; an engine takes from it what it can provide.
    fields: dict[str, Any] = {}


class PodSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A number of equal pods."""

    role: str
    container: Container
    request: Request
    #: How many run at the same time.
    count: int = 1
    #: How many must end well for the set to be complete; None for sets that serve and never complete.
    completions: int | None = 1
    #: How many must be placed together; 1 means that each pod is on its own.
    gang: int = 1
    restart: RestartPolicy = RestartPolicy.NEVER
    backoff_limit: int = 6
    #: Pod names are `<workload><infix>-<index>`.
    infix: str = ""


class PodSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an engine needs to start one attempt of one pod."""

    workload_id: str
    workload_name: str
    kind: str
    project: str
    namespace: str
    created_by: str
    pod_id: str
    pod_name: str
    attempt: int
    node: str
    role: str
    index: int
    container: Container
    request: Request
    gpu_devices: tuple[int, ...] = ()
    #: Identity variables (RUNAI_PROJECT, RUNAI_JOB_NAME …) that are set after the user's own.
    identity: dict[str, str] = {}
