"""Which nodes may run a pod, and the priority of the workload in the queue."""

from typing import Annotated, Literal, Protocol

from msgspec import UNSET, Meta

from fairlead.model.spec.fields import (
    NO_SUCH_NAME,
    ExcludeItemUnset,
    FieldInfo,
    FlagDeclaration,
    Given,
    Maybe,
    Spec,
    Text253,
    UpTo63,
    UpTo253,
    UpTo10000,
)
from fairlead.model.syntax import Syntax

Preemptible = Literal["preemptible", "non-preemptible"]
PodAffinityType = Literal["Required", "Preferred"]
MatchOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
TolerationOperator = Literal["Equal", "Exists"]
TolerationEffect = Literal["NoSchedule", "NoExecute", "PreferNoSchedule", "Any"]


class MatchExpression(Spec, frozen=True, kw_only=True):
    key: Annotated[UpTo63, FieldInfo(text="The node label's key.", mandatory=True, part="key", syntax=Syntax.LABEL_KEY)]
    operator: Annotated[
        MatchOperator, FieldInfo(text="How the label relates to the values.", mandatory=True, part="operator")
    ]
    values: Annotated[
        Given[Annotated[tuple[UpTo10000, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="At least one with In and NotIn, none with Exists and DoesNotExist, one whole number with Gt and Lt.",
            part="values",
        ),
    ] = UNSET


class NodeSelectorTerm(Spec, frozen=True, kw_only=True):
    match_expressions: Annotated[
        Given[Annotated[tuple[MatchExpression | None, ...], Meta(max_length=1000)]],
        FieldInfo(text="All of these expressions must match the node."),
    ] = UNSET


class PlacementFields(Protocol):
    """The members of placement that the spec of every kind has."""

    @property
    def node_pools(self) -> Maybe[tuple[str, ...]]: ...

    @property
    def priority_class(self) -> Maybe[str]: ...

    @property
    def preemptibility(self) -> Maybe[str]: ...

    @property
    def category(self) -> Maybe[str]: ...


class NodeAffinityRequired(Spec, frozen=True, kw_only=True):
    node_selector_terms: Annotated[
        Given[Annotated[tuple[NodeSelectorTerm | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="One of these terms must match the node. On the command line each flag is one term, its expressions "
            "separated by semicolons.",
            flags=(FlagDeclaration(name="--node-affinity", form="item"),),
        ),
    ] = UNSET


class PodAffinity(Spec, frozen=True, kw_only=True):
    type: Annotated[
        Maybe[PodAffinityType],
        FieldInfo(
            text="Whether the rule is required or preferred.",
            mandatory=True,
            yaml="podAffinitySchedulingRule",
            yaml_kinds="WTIJ",
        ),
    ] = UNSET
    key: Annotated[
        Maybe[UpTo63],
        FieldInfo(
            text="The node label whose value all pods of the workload share.",
            mandatory=True,
            yaml="podAffinityTopology",
            syntax=Syntax.LABEL_KEY,
            yaml_kinds="WTIJ",
            flags=(
                FlagDeclaration(
                    name="--required-pod-topology-key",
                    preset={"podAffinity.type": "Required"},
                    help="Place all pods on nodes with the same value of this label, or not at all.",
                ),
                FlagDeclaration(
                    name="--preferred-pod-topology-key",
                    preset={"podAffinity.type": "Preferred"},
                    help="Place all pods on nodes with the same value of this label, if possible.",
                ),
            ),
        ),
    ] = UNSET


class Toleration(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[Text253],
        FieldInfo(text="Identifies this toleration when lists are merged and when policies lock items.", part="name"),
    ] = UNSET
    operator: Annotated[
        Maybe[TolerationOperator],
        FieldInfo(
            text="Equal compares the taint's value, Exists matches any value.",
            mandatory=True,
            yaml="operator",
            part="operator",
        ),
    ] = UNSET
    key: Annotated[
        Maybe[UpTo253],
        FieldInfo(text="The taint's key.", mandatory=True, yaml="key", part="key", syntax=Syntax.LABEL_KEY),
    ] = UNSET
    value: Annotated[
        Maybe[UpTo10000],
        FieldInfo(text="The taint's value; only with Equal.", yaml="value", part="value", syntax=Syntax.LABEL_VALUE),
    ] = UNSET
    effect: Annotated[
        Maybe[TolerationEffect],
        FieldInfo(text="The taint's effect; Any matches all effects.", mandatory=True, yaml="effect", part="effect"),
    ] = UNSET
    seconds: Annotated[
        Maybe[Annotated[int, Meta(ge=1)]],
        FieldInfo(
            text="How long the taint is tolerated; only with NoExecute.",
            unit="seconds",
            default_text="forever",
            yaml="seconds",
            part="seconds",
        ),
    ] = UNSET
    exclude: ExcludeItemUnset = UNSET


NodePools = Annotated[
    Maybe[Annotated[tuple[UpTo63, ...], Meta(max_length=1000)]],
    FieldInfo(
        text="The node pools to try, in order.",
        default_text="the project's default pools",
        yaml="nodePools",
        syntax=Syntax.NODE_POOL,
        older=NO_SUCH_NAME,
        flags=(FlagDeclaration(name="--node-pools", aliases=("--node-pool",)),),
    ),
]
PriorityClass = Annotated[
    Maybe[str],
    FieldInfo(
        text="The priority: very-low, low, medium-low, medium, medium-high, high or very-high.",
        is_common=True,
        default_text="the kind's own",
        flags=(FlagDeclaration(name="--priority"),),
    ),
]
Preemptibility = Annotated[
    Maybe[Preemptible],
    FieldInfo(
        text="Whether the workload may be preempted.",
        default_text="by its priority: below 100 it may be preempted",
        flags=(
            FlagDeclaration(name="--preemptibility"),
            FlagDeclaration(
                name="--preemptible",
                form="switch",
                constant="preemptible",
                help="Older spelling: the workload may be preempted.",
            ),
        ),
    ),
]
Category = Annotated[
    Maybe[str],
    FieldInfo(
        text="The category of the workload in summaries.",
        default_text="the kind's own",
        flags=(FlagDeclaration(name="--category"),),
    ),
]
