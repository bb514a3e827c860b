"""Rules on one workload: what contradicts itself whatever the cluster has."""

import re
from collections.abc import Iterator

from fairlead.admission.admit import pod_name_violations
from fairlead.foresight.lint.material import LintFinding, LintMaterial, LintWorkload
from fairlead.model.pods.podset import PodSet
from fairlead.model.spec.names import LONGEST_NAME, SUFFIX_LENGTH, name_violations
from fairlead.model.spec.rules import Violation

#: Flags of model servers that split one model over several GPUs, and those that name the number of pods of a group.
_SPLITS = (
    re.compile(r"(?:--tensor-parallel-size|--tp-size|--tp|-tp)[ =](\d+)"),
    re.compile(r"(?:--pipeline-parallel-size|--pp-size|--pp|-pp)[ =](\d+)"),
)
_PODS = re.compile(r"(?:--nnodes|--num-nodes|--ray[_-]cluster[_-]size)[ =](\d+)")
_GROUP_SIZE = "LWS_GROUP_SIZE"


def find_above_limit(material: LintMaterial) -> Iterator[LintFinding]:
    """A request above its own limit."""
    for workload in material.workloads:
        for each in workload.above_limits:
            yield _finding(
                workload,
                "requests-exceed-limits",
                each.path,
                f"It {each.details}.",
                "Every submission is refused: no pod can be given what it requests and stay within its limit.",
            )


def find_invalid_spec(material: LintMaterial) -> Iterator[LintFinding]:
    """Every other rule between members that the server refuses a submission for."""
    for workload in material.workloads:
        names = [each for each in _name_violations(workload) if not _is_too_long(workload)]
        for each in (*names, *workload.violations):
            yield _finding(
                workload,
                "invalid-spec",
                each.path,
                f"It {each.details}.",
                "Submitting it is refused with this message.",
            )


def _name_violations(workload: LintWorkload) -> list[Violation]:
    return name_violations(workload.name, workload.is_prefix)


def _is_too_long(workload: LintWorkload) -> bool:
    return len(workload.name) + (SUFFIX_LENGTH + 1) * workload.is_prefix > LONGEST_NAME


def find_too_long_name(material: LintMaterial) -> Iterator[LintFinding]:
    """A name from which longer names than Kubernetes allows are made."""
    for workload in material.workloads:
        broken = _name_violations(workload) if _is_too_long(workload) else []
        if not broken and workload.pod_sets:
            broken = pod_name_violations(workload.kind, workload.spec, workload.name, workload.is_prefix)
        if not broken:
            continue
        suffix = f" and its suffix of {SUFFIX_LENGTH + 1} characters" if workload.is_prefix else ""
        yield _finding(
            workload,
            "name-too-long",
            broken[0].path,
            f"It {broken[0].details}.",
            f"'{workload.name}'{suffix} is refused at submission; a shorter name is not.",
        )


def find_waiting_leader(material: LintMaterial) -> Iterator[LintFinding]:
    """Workers that start when their leader is ready, and a leader that is ready only with its workers."""
    for workload in material.workloads:
        sets = {each.role: each for each in workload.pod_sets}
        for followers in workload.pod_sets:
            leader = sets.get(followers.starts_after)
            need = _needs_others(leader) if leader is not None else ""
            if leader is None or not need:
                continue
            member = f"spec.{leader.member}" if leader.member else "spec"
            yield _finding(
                workload,
                "leader-waits-for-workers",
                f"{member}.probes.readiness",
                f"The {leader.role} is ready only with its {followers.role}s, and they start only when it is ready.",
                f"The {leader.role} runs {need}, its readiness probe fails until then, and 0 of {followers.count} "
                f"{followers.role}s ever start. Let them start together with the {leader.role} (LeaderCreated).",
                level="warning",
            )


def _needs_others(leader: PodSet) -> str:
    """What in the leader's command needs more than its own pod; empty if nothing does or it has no readiness probe."""
    container = leader.container
    if container.fields.readiness is None:
        return ""
    text = " ".join((*container.command, *container.args))
    if _GROUP_SIZE in text:
        return f"with {_GROUP_SIZE}, the number of all pods of the group"
    pods = _PODS.search(text)
    if pods is not None and int(pods[1]) > 1:
        return f"with '{pods[0]}'"
    split = [match for pattern in _SPLITS if (match := pattern.search(text)) is not None]
    needed = 1
    for match in split:
        needed *= int(match[1])
    own = leader.request.gpu_devices or 1
    return f"with '{' '.join(match[0] for match in split)}' on {own} of {needed} GPUs" if needed > own else ""


def _finding(
    workload: LintWorkload, rule: str, path: str, message: str, counter_example: str, *, level: str = "error"
) -> LintFinding:
    return LintFinding(
        rule=rule,
        level=level,
        file=workload.file,
        subject=workload.subject,
        path=path,
        message=message,
        counter_example=counter_example,
    )
