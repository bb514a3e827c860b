"""Probes, ports and URLs on the local engine."""

from fairlead.engines.declared.effect import Effect, Table, idle, seen

_NAME = "tells items apart where lists are merged"
_PEOPLE = "words for people; kept and shown"
_PROXY = "no test has seen it yet"


def _seen(host: str, name: str, *, unless: str = "") -> Effect:
    return seen(host, f"contract/test_local_network.py::test_{name}", unless=unless)


_PROBE = "probes.readiness"
_GET = f"{_PROBE}.handler.httpGet"

EFFECTS: Table = {
    f"{_PROBE}.initialDelaySeconds": _seen(
        "before the first question", "the_first_question_waits_for_the_initial_delay"
    ),
    f"{_PROBE}.periodSeconds": _seen(
        "between two questions", "failing_again_after_the_threshold_ends_readiness_and_passing_brings_it_back"
    ),
    f"{_PROBE}.timeoutSeconds": _seen(
        "an answer that takes longer failed", "a_probe_that_hangs_is_given_up_after_its_timeout"
    ),
    f"{_PROBE}.successThreshold": _seen(
        "so many good answers make it ready", "as_many_good_answers_in_a_row_as_asked_for"
    ),
    f"{_PROBE}.failureThreshold": _seen(
        "so many bad ones end that", "failing_again_after_the_threshold_ends_readiness_and_passing_brings_it_back"
    ),
    f"{_GET}.path": _seen("what is asked for", "path_and_host_are_what_is_asked"),
    f"{_GET}.port": _seen("where", "a_pod_is_ready_when_its_probe_passes_and_not_before"),
    f"{_GET}.host": _seen("the Host header", "path_and_host_are_what_is_asked"),
    f"{_GET}.scheme": _seen("HTTP or HTTPS", "https_is_asked_without_looking_at_the_certificate"),
    "ports[].name": idle(_NAME),
    "ports[].container": _seen("the port inside the pod", "two_pods_listen_on_the_same_port_at_once"),
    "ports[].serviceType": _seen(
        "a listener of this machine",
        "a_node_port_outside_its_range_is_refused",
        unless="a taken port fails the workload",
    ),
    "ports[].external": _seen(
        "the port of this machine",
        "a_port_of_another_workload_is_refused_naming_it",
        unless="refused where it is taken",
    ),
    "ports[].toolType": idle(_PEOPLE),
    "ports[].toolName": idle(_PEOPLE),
    "exposedUrls[].name": idle(_NAME),
    "exposedUrls[].container": idle(_PROXY),
    "exposedUrls[].url": idle(_PROXY),
    "exposedUrls[].authorizationType": idle(_PROXY),
    "exposedUrls[].authorizedUsers[]": idle(_PROXY),
    "exposedUrls[].authorizedGroups[]": idle(_PROXY),
    "exposedUrls[].toolType": idle(_PEOPLE),
    "exposedUrls[].toolName": idle(_PEOPLE),
    "relatedUrls[].name": idle(_PEOPLE),
    "relatedUrls[].url": idle(_PEOPLE),
    "relatedUrls[].type": idle(_PEOPLE),
}
