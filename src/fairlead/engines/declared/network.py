"""Probes, ports and URLs on the local engine."""

from fairlead.engines.declared.effect import Effect, named, seen


def _seen(host: str, name: str, *, unless: str = "") -> Effect:
    return seen(host, f"contract/test_local_network.py::test_{name}", unless=unless)


def _url(host: str, name: str, *, unless: str = "") -> Effect:
    return seen(host, f"e2e/test_fields_network.py::test_{name}", unless=unless)


_PROBE = "probes.readiness"
_GET = f"{_PROBE}.handler.httpGet"

EFFECTS: dict[str, Effect] = {
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
    "ports[].name": named(),
    "ports[].container": _seen("the port inside the pod", "two_pods_listen_on_the_same_port_at_once"),
    "ports[].serviceType": _url(
        "a listener of this machine that passes connections to ready pods; NodePort from 30000 to 32767",
        "ports_service_type",
    ),
    "ports[].external": _url(
        "the port of this machine", "ports_external", unless="a taken one fails the workload, naming who holds it"
    ),
    "ports[].toolType": _url("shown with the port", "ports_tool"),
    "ports[].toolName": _url("shown with the port", "ports_tool"),
    "exposedUrls[].name": _url("shown with the URL, where no tool is named", "exposed_urls_tool"),
    "exposedUrls[].container": _url("the port behind the URL", "exposed_urls_container"),
    "exposedUrls[].url": _url(
        "its host and path, with the path kept; else <workload>-<project> below the server's domain",
        "exposed_urls_url",
        unless="a taken one fails the workload",
    ),
    "exposedUrls[].authorizationType": _url(
        "checked by the proxy for every request", "exposed_urls_authorization_type"
    ),
    "exposedUrls[].authorizedUsers[]": _url("only these users and service accounts", "exposed_urls_authorized_users"),
    "exposedUrls[].authorizedGroups[]": _url("only members of these groups", "exposed_urls_authorized_groups"),
    "exposedUrls[].toolType": _url("shown with the URL", "exposed_urls_tool"),
    "exposedUrls[].toolName": _url("shown with the URL", "exposed_urls_tool"),
    "relatedUrls[].name": _url("shown with the URL", "related_urls"),
    "relatedUrls[].url": _url("listed with the workload's own", "related_urls"),
    "relatedUrls[].type": _url("shown with the URL", "related_urls"),
}
