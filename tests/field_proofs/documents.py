"""Tests that have seen on a cluster what those fields of workload YAML do that concern no property of a spec."""

_CUSTOM_RESOURCES = "kubernetes/test_custom_resources.py::test_"
#: By the name of the field.
DOCUMENT_PROOFS = {
    "active": f"{_CUSTOM_RESOURCES}active_works_both_ways",
    "baseWorkload": f"{_CUSTOM_RESOURCES}a_template_in_the_namespace_runai_is_everybodys",
    "ingressUrl": f"{_CUSTOM_RESOURCES}the_system_fills_in_who_applied_it_and_where_it_is_reached",
    "name": f"{_CUSTOM_RESOURCES}applied_workloads_run_and_say_how_they_are",
    "namePrefix": f"{_CUSTOM_RESOURCES}a_prefix_becomes_a_name",
    "usage": f"{_CUSTOM_RESOURCES}a_template_in_the_namespace_runai_is_everybodys",
    "userId": f"{_CUSTOM_RESOURCES}the_system_fills_in_who_applied_it_and_where_it_is_reached",
}
