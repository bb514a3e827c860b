"""Members of workloads that answer requests: how many pods there are, and how long things may take."""

from fairlead.engines.declared.effect import Effect, seen

_SERVICE = "e2e/test_inference.py::"
_LOAD = "e2e/test_inference_scaling.py::"
_READ = "unit/model/spec/test_autoscaling.py::"
_FROM_NONE = f"{_LOAD}test_a_request_to_a_sleeping_service_waits_and_is_answered"
_CROWD = f"{_LOAD}test_pods_follow_the_requests_at_once_and_no_request_fails"
_ASLEEP = f"{_LOAD}test_it_begins_asleep_and_wakes_with_as_many_as_it_should"
_MEASURES = f"{_LOAD}test_pods_follow_other_measures"

EFFECTS: dict[str, Effect] = {
    "servingPort.container": seen("a URL", f"{_SERVICE}test_a_service_answers_with_all_its_pods"),
    "servingPort.protocol": seen(
        "HTTP/1.1, or with grpc HTTP/2 without a change of protocol, is passed on",
        "e2e/test_inference_grpc.py::test_all_four_ways_of_calling",
        unless="grpc is refused where URLs are told apart by their paths",
    ),
    "servingPort.clusterLocalAccessOnly": seen(
        "no URL, a port of this machine instead",
        f"{_SERVICE}test_a_service_of_the_cluster_alone_has_a_port_and_no_url",
    ),
    "autoscaling.minReplicas": seen("not fewer pods; with 0 it sleeps when nobody asks", _FROM_NONE),
    "autoscaling.maxReplicas": seen("not more pods", _CROWD),
    "autoscaling.initialReplicas": seen("so many at first", _ASLEEP),
    "autoscaling.activationReplicas": seen("so many when a request wakes it", _ASLEEP),
    "autoscaling.metric": seen("what is measured", _MEASURES),
    "autoscaling.metricThreshold": seen("how much one pod bears", _MEASURES),
    "autoscaling.metricThresholdPercentage": seen(
        "from which part of the threshold on pods are added", f"{_READ}test_what_one_pod_is_to_bear"
    ),
    "autoscaling.concurrencyHardLimit": seen(
        "further requests wait", f"{_LOAD}test_a_pod_gets_no_more_at_once_than_its_limit"
    ),
    "autoscaling.scaleToZeroRetentionSeconds": seen(
        "the last pod stays so long", f"{_LOAD}test_the_last_pod_is_kept_for_its_retention"
    ),
    "autoscaling.scaleDownDelaySeconds": seen(
        "a lower load must last so long", f"{_LOAD}test_pods_stay_for_the_delay_although_the_load_has_gone"
    ),
    "autoscaling.initializationTimeoutSeconds": seen(
        "as in servingConfiguration", f"{_READ}test_times_are_read_from_both_places_and_the_newer_wins"
    ),
    "servingConfiguration.initializationTimeoutSeconds": seen(
        "what is not ready then has failed", f"{_LOAD}test_a_service_that_is_never_ready_has_failed"
    ),
    "servingConfiguration.requestTimeoutSeconds": seen(
        "an answer that has not begun then is 504",
        f"{_LOAD}test_a_request_that_is_not_answered_in_time_ends_with_504",
    ),
}
