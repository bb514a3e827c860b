"""Answers about workloads that fit no present node, where an autoscaler adds nodes: they wait for a new one.

Called by everything that explains why a workload does not start. What a quota blocks is not changed by new nodes.
"""

from typing import TypeVar

import msgspec

from fairlead.control.context import Context
from fairlead.foresight.plan import PlanAnswer
from fairlead.foresight.why import WhyAnswer
from fairlead.scheduling import Reason, format_reason
from fairlead.scheduling.messages import NEVER

_OF_NODES = frozenset({"NeverFits", "NoNodeFits", "GangIncomplete", "Fragmented"})

AnswerT = TypeVar("AnswerT", WhyAnswer, PlanAnswer)


def may_new_node_help(context: Context, reason: Reason) -> bool:
    return reason.code in _OF_NODES and context.engine_of(context.directory.cluster_id).may_nodes_be_added()


def format_for_cluster(context: Context, reason: Reason) -> str:
    """The sentence of a reason. With an autoscaler, it does not say that the workload can never start."""
    sentence = format_reason(reason)
    if sentence.startswith(NEVER) and may_new_node_help(context, reason):
        return f"Waiting for a new node{sentence.removeprefix(NEVER)}"
    return sentence


def correct_for_cluster(context: Context, answer: AnswerT) -> AnswerT:
    """The answer without the claim that it can never start, if a new node may help."""
    if answer.status != "never" or answer.reason is None or not may_new_node_help(context, answer.reason):
        return answer
    message = format_for_cluster(context, answer.reason)
    corrected: AnswerT = msgspec.structs.replace(answer, status="waits", message=message)
    return corrected
