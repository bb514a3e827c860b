"""What is checked: workloads, policies and at most one cluster, each with the place where it was written.

The callers read files and servers; this only has the result. No rule reads anything else.
"""

from collections.abc import Iterator

import msgspec

from fairlead.admission.policies.merge import Policy
from fairlead.formats.intermediate import IntermediateWorkload
from fairlead.kinds.kind import Kind, spec_violations
from fairlead.kinds.policies import PolicyType
from fairlead.model.pods.podset import PodSet
from fairlead.model.spec.compute import Compute
from fairlead.model.spec.fields import INT32_MAX, Spec, build, fields_of
from fairlead.model.spec.object_rules import limit_violations
from fairlead.model.spec.rules import SubmissionLimits, Violation
from fairlead.scheduling.model.snapshot import Job, Queue, Snapshot, SnapshotNode, Topology


class LintFinding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    rule: str
    #: `error`: it cannot work; `warning`: it works, but not as it looks.
    level: str
    #: The file, or the address of the server.
    file: str
    #: What it is about: `workload bert`.
    subject: str
    #: The member of it, dotted.
    path: str
    message: str
    #: A case that shows it.
    counter_example: str


class LintWorkload(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    kind: Kind
    name: str
    is_prefix: bool
    #: Empty if it is not known.
    project: str
    spec: Spec
    #: Requests above limits.
    above_limits: tuple[Violation, ...]
    #: Every other broken rule between members.
    violations: tuple[Violation, ...]
    #: Empty if the spec breaks rules: then its pods cannot be told.
    pod_sets: tuple[PodSet, ...]

    @property
    def subject(self) -> str:
        return f"workload {self.name}"


class LintPolicy(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    #: Where it is in its file; empty for the whole document.
    path: str = ""
    name: str
    type: PolicyType
    #: tenant, cluster, department or project.
    scope: str
    #: The department or project, by name or id.
    owner: str = ""
    #: The department of the owner, if it is known.
    parent: str = ""
    policy: Policy

    @property
    def subject(self) -> str:
        return f"policy {self.name}"


class LintQueue(msgspec.Struct, frozen=True, kw_only=True):
    queue: Queue
    path: str
    #: How the quota of a resource is called there.
    quota_member: str = "quota"

    @property
    def subject(self) -> str:
        return f"{self.queue.display_name or self.queue.name} in node pool {self.queue.node_pool}"


class LintCluster(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    queues: tuple[LintQueue, ...] = ()
    #: Node pools, and where each is named.
    pools: dict[str, str] = {}
    #: None if they are not known.
    nodes: tuple[SnapshotNode, ...] | None = None
    #: None if they are not known.
    topologies: tuple[Topology, ...] | None = None
    jobs: tuple[Job, ...] = ()


class LintMaterial(msgspec.Struct, frozen=True, kw_only=True):
    workloads: tuple[LintWorkload, ...] = ()
    policies: tuple[LintPolicy, ...] = ()
    cluster: LintCluster | None = None


def workload_of(file: str, read: IntermediateWorkload) -> LintWorkload:
    """A workload as a reader of formats gives it."""
    spec = build(read.kind.spec, read.spec)
    above = tuple(find_above_limits(spec, "spec"))
    broken = spec_violations(read.kind, spec, "spec", SubmissionLimits(completions=INT32_MAX))
    known = {(each.path, each.details) for each in above}
    others = tuple(each for each in broken if (each.path, each.details) not in known)
    return LintWorkload(
        file=file,
        kind=read.kind,
        name=read.name,
        is_prefix=read.is_prefix,
        project=read.project,
        spec=spec,
        above_limits=above,
        violations=others,
        pod_sets=() if others else read.kind.podsets(spec),
    )


def find_above_limits(spec: msgspec.Struct, path: str) -> Iterator[Violation]:
    """Every request above its limit in the spec and in the specs of its roles."""
    for field in fields_of(type(spec)):
        value, here = getattr(spec, field.attribute), f"{path}.{field.rest}"
        if isinstance(value, Compute):
            yield from (Violation(f"{here}.{member}", details) for member, details, _ in limit_violations(value))
        elif isinstance(value, msgspec.Struct) and field.struct is not None:
            yield from find_above_limits(value, here)


def cluster_of(file: str, snapshot: Snapshot) -> LintCluster:
    """The cluster of a snapshot."""
    pools = {each.name: f"settings.pools[{number}]" for number, each in enumerate(snapshot.settings.pools)}
    for number, queue in enumerate(snapshot.queues):
        pools.setdefault(queue.node_pool, f"queues[{number}].nodePool")
    for number, node in enumerate(snapshot.nodes):
        pools.setdefault(node.node_pool, f"nodes[{number}].nodePool")
    return LintCluster(
        file=file,
        queues=tuple(
            LintQueue(queue=queue, path=f"queues[{number}].resources") for number, queue in enumerate(snapshot.queues)
        ),
        pools=pools,
        nodes=snapshot.nodes,
        topologies=snapshot.topologies,
        jobs=snapshot.jobs,
    )
