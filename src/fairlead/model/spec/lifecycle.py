"""How pods are run: terminal, retries, grace period, auto-deletion. Shared by the kinds that run to completion."""

from typing import Annotated, Literal

from msgspec import Meta

from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Int64, Maybe

BACKOFF_LIMIT = 6
GRACE_SECONDS = 30
#: Thirty days.
AUTO_DELETION_SECONDS = 2_592_000
RestartPolicyName = Literal["Always", "Never", "OnFailure"]

Tty = Annotated[
    Maybe[bool],
    FieldInfo(
        text="Gives the process a terminal; needs stdin.",
        default=False,
        origin="kubernetes",
        yaml="tty",
        flags=(FlagDeclaration(name="--tty", short="-t"),),
    ),
]
Stdin = Annotated[
    Maybe[bool],
    FieldInfo(
        text="Keeps the standard input of the process open; otherwise it is at end of file.",
        default=False,
        origin="kubernetes",
        yaml="stdin",
        flags=(FlagDeclaration(name="--stdin"),),
    ),
]
BackoffLimit = Annotated[
    Maybe[Int64],
    FieldInfo(
        text="How many pods may fail and be replaced before the workload is Failed.",
        default=BACKOFF_LIMIT,
        origin="prose",
        yaml="backoffLimit",
        yaml_kinds="WTDJ",
        flags=(FlagDeclaration(name="--backoff-limit"),),
    ),
]
RestartPolicyField = Annotated[
    Maybe[RestartPolicyName],
    FieldInfo(
        text="Whether a container that exits is restarted in place: always, after a failure, or never.",
        default_text="Never: a failed pod is replaced by a new one",
        flags=(FlagDeclaration(name="--restart-policy"),),
    ),
]
TerminationGracePeriod = Annotated[
    Maybe[Annotated[int, Meta(ge=0, le=2**63 - 1, extra_json_schema={"format": "int64"})]],
    FieldInfo(
        text="The time between the termination signal and the forced kill; 0 kills at once.",
        unit="seconds",
        default=GRACE_SECONDS,
        origin="kubernetes",
        flags=(FlagDeclaration(name="--termination-grace-period", form="duration"),),
    ),
]
TerminateAfterPreemption = Annotated[
    Maybe[bool],
    FieldInfo(
        text="A preempted workload ends instead of returning to the queue.",
        default=False,
        origin="prose",
        yaml="terminateAfterPreemption",
        yaml_kinds="WTJ",
        flags=(FlagDeclaration(name="--terminate-after-preemption"),),
    ),
]
PreemptionLimit = Annotated[
    Maybe[Annotated[int, Meta(ge=0, le=2**31 - 1, extra_json_schema={"format": "int32"})]],
    FieldInfo(
        text="How often the workload may be preempted. One more preemption makes it Failed.",
        default_text="no limit",
        yaml="preemptionLimit",
        yaml_kinds="T",
        flags=(FlagDeclaration(name="--preemption-limit"),),
        surface="older",
    ),
]
AutoDeletionTime = Annotated[
    Maybe[Int64],
    FieldInfo(
        text="How long after its end the workload is deleted automatically; 0 deletes it at once.",
        unit="seconds",
        default=AUTO_DELETION_SECONDS,
        origin="prose",
        default_text="2592000, which is 30 days; an object that was created with kubectl is never deleted by itself",
        yaml="autoDeletionTimeAfterCompletionSeconds",
        yaml_kinds="WTDJ",
        flags=(FlagDeclaration(name="--auto-deletion-time-after-completion", form="duration"),),
    ),
]
