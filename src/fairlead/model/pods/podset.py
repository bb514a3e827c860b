"""The vocabulary between kinds and engines: a kind says which pods its spec means, an engine runs them.

Neither `scheduling` nor an engine knows kinds; they see only these types.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from fairlead.model.pods.container_fields import NO_FIELDS, ContainerFields
from fairlead.model.pods.scaling import Scaling
from fairlead.model.records.revision import Stage


class RestartPolicy(StrEnum):
    """What happens to a container that exits."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    #: A failed pod is replaced by a new one, within the backoff limit.
    NEVER = "Never"


class RestartScope(StrEnum):
    """What is restarted when a pod fails."""

    POD = "Pod"
    #: All pods of its group; those that still run are stopped first.
    GROUP = "Group"


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one pod requests of a node. GPUs are requested in exactly one way: whole, portion, memory or MIG."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    #: Number of devices; with portion or memory, that share of each of them.
    gpu_devices: int = 0
    #: Share of each device in thousandths; 1000 = whole devices.
    gpu_portion: int = 1000
    #: Memory per device; 0 unless GPUs are requested by memory.
    gpu_memory_bytes: int = 0
    #: Extended resources by name, MIG profiles (`nvidia.com/mig-1g.5gb`) among them.
    extended: dict[str, int] = {}

    @property
    def gpu_memory_mib(self) -> int:
        """As the scheduler counts it: less than a mebibyte is one, so that the pod gets a device."""
        return -(-self.gpu_memory_bytes >> 20)


class EnvironmentVariable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variable with exactly one source; references are resolved by the engine at the pod's start."""

    name: str
    value: str | None = None
    #: (object name, key)
    secret: tuple[str, str] | None = None
    config_map: tuple[str, str] | None = None
    user_credential: tuple[str, str] | None = None
    pod_field: str | None = None


class PodContainer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What runs in a pod: the fields of the spec with defaults applied, split and parsed."""

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
    #: Everything else that the spec says of the pod; an engine takes from it what it can provide.
    fields: ContainerFields = NO_FIELDS


class OperatorOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options for the cluster's operator of the framework."""

    #: PyTorch, MPI, TF, XGBoost or JAX.
    framework: str
    #: Which pods are deleted when the workload has ended: None, Running or All.
    cleans: str = "None"
    #: Processes that MPI starts on each worker, and where its images expect their keys.
    slots: int = 1
    keys_path: str = ""


class PodSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A number of equal pods, in each of a number of equal groups. See `docs/designs/0003-pod-sets.md`.

    Templates may contain `{workload}`, `{run}`, `{revision}`, `{role}`, `{group}`, `{index}` and `{ordinal}`; those of
    variables and labels also `{namespace}`. Those of variables may also contain `{host:NAME}` and `{fqdn:NAME}` (the
    short and the full address of a pod), `{port:P+N}` (port P if the pod has its own network, otherwise the Nth port of
    its workload on the machine), and `{agent}` (a program that runs commands in other pods and is called like `ssh`).
    """

    role: str
    container: PodContainer
    request: Request
    #: The member of the spec that describes its pods, by REST name; empty: the spec itself.
    member: str = ""
    #: The number of groups. Sets of a workload with several groups have the same number.
    groups: int = 1
    #: How many run at the same time in each group.
    count: int = 1
    #: How many must succeed for the set to be complete; None for sets that serve and never complete.
    completions: int | None = 1
    #: Sets of the same gang are placed together, group by group, or not at all; empty: each pod is placed alone.
    gang: str = ""
    #: The minimum number of pods of each group that its gang needs to run; None for all of them.
    minimum: int | None = None
    #: Whether its pods are placed before the others of their gang.
    is_placed_first: bool = msgspec.field(default=False, name="leads")
    #: The set of the same group whose pods must be ready before pods of this one start.
    starts_after: str = ""
    restart: RestartPolicy = RestartPolicy.NEVER
    restart_scope: RestartScope = RestartScope.POD
    #: The number of failures that are retried before the workload fails; sets that never complete are always retried.
    backoff_limit: int = 6
    #: Whether indices run from 0 to `count` - 1 and a replacement reuses its predecessor's; otherwise they only grow.
    has_fixed_indices: bool = msgspec.field(default=False, name="slots")
    #: Added to the index to get the ordinal, so that ranks continue those of another set.
    offset: int = 0
    #: Whether its pods keep running when the workload has ended.
    keeps_running: bool = msgspec.field(default=False, name="outlives")
    #: The template of a pod's name.
    naming: str = "{workload}-{run}-{index}"
    #: Whether the other pods of its workload reach its pods by name.
    addressed: bool = False
    #: The set of the same group in whose pods its programs may run commands; empty: in none.
    may_exec_in: str = msgspec.field(default="", name="commands")
    #: Whether its pods only wait for processes that others start in them.
    is_idle: bool = False
    #: Templates of small files, by the absolute path at which its pods find them.
    files: dict[str, str] = {}
    #: Templates of variables (a variable of the spec with the same name wins), of labels and of annotations.
    variables: dict[str, str] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    #: The suffix after the workload's name in the names of its Kubernetes objects.
    infix: str = ""
    #: The port on which its pods answer requests; 0 for none.
    serving_port: int = 0
    #: Options for the cluster's operator of its framework, if it has one.
    operated: OperatorOptions | None = None
    #: How its count follows the load; None: the count is fixed.
    scaling: Scaling | None = None
    #: Its revision, filled in by `control`; 0 and None for kinds without revisions.
    revision: int = 0
    stage: Stage | None = None

    @property
    def min_count(self) -> int:
        """The minimum number of pods of a group without which it does not run."""
        return self.count if self.minimum is None else self.minimum

    @property
    def total(self) -> int:
        """The number of pods that run at the same time in all groups."""
        return self.groups * self.count


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with its placeholders filled in; other braces stay, so that a template may be JSON."""
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def longest_names(podsets: Iterable[PodSet], workload: str) -> list[tuple[str, str]]:
    """The longest names that are made from the workload's name in its first ten runs: (what would have the name, name).
    These are pods that are hosts, their services, and values of their labels."""
    names: dict[str, str] = {}
    for podset in podsets:
        if not podset.addressed:
            continue
        last = max(podset.count - 1, 0)
        values = {
            "workload": workload,
            "run": "0",
            "role": podset.role,
            "group": str(max(podset.groups - 1, 0)),
            "index": str(last),
            "ordinal": str(last + podset.offset),
        }
        names.setdefault(fill(podset.naming, values), f"a pod ({podset.role})")
        if podset.container.fields.ports or podset.container.fields.exposed_urls:
            names.setdefault(f"{workload}{podset.infix}", f"a service ({podset.role})")
        for label, template in podset.labels.items():
            names.setdefault(fill(template, values), f"the value of label {label}")
    return [(what, name) for name, what in names.items()]


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
    container: PodContainer
    request: Request
    gpu_devices: tuple[int, ...] = ()
    #: Identity variables (RUNAI_PROJECT, RUNAI_JOB_NAME …) that are set after the user's own.
    identity: dict[str, str] = {}
    #: Variables that are set before the user's own; `{host:NAME}` and the like in them are the engine's to fill in.
    variables: dict[str, str] = {}
    group: int = 0
    #: Whether the other pods of its workload reach it by its name.
    addressed: bool = False
    #: The role of its group in whose pods it may run commands.
    may_exec_in: str = msgspec.field(default="", name="commands")
    #: Small files, by the absolute path at which it finds them.
    files: dict[str, str] = {}
    #: Whether it takes over the environment of its caller, which the engine loads before its start.
    has_caller_environment: bool = False
    #: The account of the machine as which it runs; empty for the engine's choice.
    machine_user: str = ""
