"""Autoscaling: the types between kinds, the loop and the proxy.

A kind puts a `Scaling` into its pod set; `control/decide/autoscale.py` decides by it, `control/serving/traffic.py`
measures.
"""

from enum import StrEnum

import msgspec

from fairlead.model.clock import SECOND, Millis

#: The default timeouts for a revision to become ready and for a request to be answered.
INITIALIZATION: Millis = 600 * SECOND
REQUEST_TIMEOUT: Millis = 300 * SECOND


class Measure(StrEnum):
    """The metric of autoscaling."""

    #: Requests that are being answered or are waiting.
    CONCURRENCY = "concurrency"
    #: Requests per second.
    THROUGHPUT = "throughput"
    #: Milliseconds from a request to the end of its answer.
    LATENCY = "latency"


class Scaling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bounds and the metric by which a pod set is scaled. Its `count` is the number of pods to begin with."""

    min_pods: int = msgspec.field(default=1, name="least")
    max_pods: int = msgspec.field(default=1, name="most")
    #: The number of pods that a revision begins with.
    initial: int = 1
    #: The number of pods that start when a request arrives and none runs.
    activation: int = 1
    measure: Measure = Measure.CONCURRENCY
    #: The target value of the metric per pod.
    target: float = 1.0
    #: How long the load must stay lower before pods are removed, and the minimum time that the last one is kept.
    delay: Millis = 0
    retention: Millis = 0
    #: The maximum number of concurrent requests per pod; 0 for no limit.
    concurrency_limit: int = 0
    initialization: Millis = INITIALIZATION
    request_timeout: Millis = REQUEST_TIMEOUT
