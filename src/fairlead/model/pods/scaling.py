"""How the number of pods that answer requests follows their load: the words between kinds, the loop and the proxy.

A kind puts a `Scaling` into its pod set; `control/decide/autoscale.py` decides by it, `control/serving/traffic.py`
measures.
"""

from enum import StrEnum

import msgspec

from fairlead.model.clock import SECOND, Millis

#: How long a revision may take to be ready, and a request to be answered, where nothing else is said.
INITIALIZATION: Millis = 600 * SECOND
REQUEST_TIMEOUT: Millis = 300 * SECOND


class Measure(StrEnum):
    """What load is measured by."""

    #: Requests that are being answered or wait for it.
    CONCURRENCY = "concurrency"
    #: Requests per second.
    THROUGHPUT = "throughput"
    #: Milliseconds from a request to the end of its answer.
    LATENCY = "latency"


class Scaling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Between how many pods, and by what, a set grows and shrinks. Its `count` is with how many it begins."""

    min_pods: int = msgspec.field(default=1, name="least")
    max_pods: int = msgspec.field(default=1, name="most")
    #: With how many a revision begins.
    initial: int = 1
    #: With how many it wakes from none.
    activation: int = 1
    measure: Measure = Measure.CONCURRENCY
    #: How much of the measure one pod is to bear.
    target: float = 1.0
    #: How long a lower load must last before pods go, and how long the last of them stays in any case.
    delay: Millis = 0
    retention: Millis = 0
    #: The most requests that one pod gets at once; 0 for any number.
    concurrency_limit: int = 0
    initialization: Millis = INITIALIZATION
    request_timeout: Millis = REQUEST_TIMEOUT
