"""Where a pod may run and when it goes first: done by scheduling, the same on every engine of one machine."""

from fairlead.engines.declared.effect import Effect, idle, named, seen

_TESTS = "e2e/test_fields_placement.py::test_"


def _seen(host: str, name: str, *, unless: str = "") -> Effect:
    return seen(host, _TESTS + name, unless=unless)


_TERMS = "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[]"

EFFECTS: dict[str, Effect] = {
    "nodeType": _seen("nodes with the label run.ai/type of that value", "node_type"),
    f"{_TERMS}.key": _seen("the label that is looked at", "node_affinity_required"),
    f"{_TERMS}.operator": _seen("how it is compared", "node_affinity_required"),
    f"{_TERMS}.values[]": _seen("with what", "node_affinity_required"),
    "podAffinity.type": _seen("pods of the workload stay together", "pod_affinity"),
    "podAffinity.key": _seen("the label whose value is shared", "pod_affinity"),
    "tolerations[].name": named(),
    "tolerations[].operator": _seen("how the taint's value is compared", "tolerations"),
    "tolerations[].key": _seen("the taint that is tolerated", "tolerations"),
    "tolerations[].value": _seen("the taint's value", "tolerations"),
    "tolerations[].effect": _seen("which effect of it", "tolerations"),
    "tolerations[].seconds": idle(
        "nodes here get no taints while pods run", proof="e2e/test_fields_records.py::test_tolerations_seconds"
    ),
    "nodePools[]": seen("tried in order", "e2e/test_quota.py::test_node_pools_are_tried_in_order"),
    "priorityClass": seen("who goes first", "e2e/test_quota.py::test_a_preempted_workload_may_ask_to_end"),
    "preemptibility": seen(
        "whether it may be evicted", "e2e/test_quota.py::test_borrowed_gpus_are_reclaimed_and_everybody_is_told"
    ),
}
