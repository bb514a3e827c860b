"""The requests to workloads' URLs: which pod answers each, which of them wait, and how much load there is.

Kept in memory on the server that holds the lease. The reverse proxy asks for a pod here for every request. The loop
says which pods are ready, reads the load for its decisions, and is notified when to decide on a service. No connection
is opened here, and no pod is started or stopped.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from fairlead.control.decide.autoscale import Load
from fairlead.control.serving.request_rates import RequestRates, Totals
from fairlead.model.clock import Clock, Millis

#: Arrivals notify the loop of load at most so often per long window.
_NOTIFICATIONS = 120
#: The number of a service's newest pods whose requests are counted one by one.
_COUNTED_PODS = 1000


class ServiceBackends(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop knows about a service."""

    #: The pods that answer now.
    pods: tuple[str, ...] = ()
    #: The attempts of its pods that have not ended, ready or not.
    running: frozenset[tuple[str, int]] = frozenset()
    #: Whether requests wait for a pod if there is none; and how long one may wait for its answer to begin.
    holds: bool = False
    timeout: Millis | None = None
    #: The most concurrent requests of one pod; 0: any number.
    limit: int = 0
    #: Whether the number of pods follows the load.
    is_scaled: bool = False


class Service:
    """One workload's requests."""

    __slots__ = ("busy", "counted_since", "next_notification", "pods", "rates", "serving", "turn", "waiting")

    def __init__(self, rates: RequestRates, counted_since: Millis) -> None:
        self.rates = rates
        self.counted_since = counted_since
        self.serving = ServiceBackends()
        self.busy: dict[str, int] = {}
        self.pods: dict[str, Totals] = {}
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.turn = 0
        self.next_notification = 0.0


class PendingRequest:
    """One request: it waits, has a pod, and ends."""

    __slots__ = ("_traffic", "began", "pod_id", "service", "workload_id")

    def __init__(self, traffic: "Traffic", workload_id: str, service: Service, began: float) -> None:
        self._traffic = traffic
        self.workload_id = workload_id
        self.service = service
        self.began = began
        self.pod_id = ""

    @property
    def serving(self) -> ServiceBackends:
        return self.service.serving

    def find_pod(self, excluded: frozenset[str] = frozenset()) -> str:
        """The pod with the fewest requests; empty if none can take it."""
        self.leave_pod()
        service = self.service
        pods = [pod for pod in service.serving.pods if pod not in excluded]
        if not pods:
            return ""
        service.turn += 1
        start = service.turn % len(pods)
        pod = min((*pods[start:], *pods[:start]), key=lambda each: service.busy.get(each, 0))
        if service.serving.limit and service.busy.get(pod, 0) >= service.serving.limit:
            return ""
        service.busy[pod] = service.busy.get(pod, 0) + 1
        self.pod_id = pod
        return pod

    async def wait(self) -> None:
        """Wait until a pod may be free."""
        self._traffic.notify_load(self.workload_id)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.service.waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._traffic.call_next(self.service)
            raise
        finally:
            if not future.done():
                future.cancel()

    def leave_pod(self) -> None:
        if not self.pod_id:
            return
        busy = self.service.busy
        busy[self.pod_id] -= 1
        if not busy[self.pod_id]:
            del busy[self.pod_id]
            if self.pod_id not in self.service.serving.pods:
                self._traffic.notify_load(self.workload_id)
        self.pod_id = ""
        self._traffic.call_next(self.service)

    def end(self, *, is_timed: bool = True) -> None:
        self._traffic.end(self, is_timed)


class Traffic:
    def __init__(self, clock: Clock, measure: Callable[[], float], window: Millis = 60_000) -> None:
        self._clock = clock
        self._measure = measure
        self._window = window
        self._services: dict[str, Service] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._cut: Callable[[str], None] = lambda pod_id: None

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the id of a workload that must be decided on."""
        self._listeners.append(listener)

    def ignore(self, listener: Callable[[str], None]) -> None:
        """Call `listener` no longer."""
        self._listeners.remove(listener)

    def listen_for_ends(self, cut: Callable[[str], None]) -> None:
        """Call `cut` with the id of a pod whose attempt has ended."""
        self._cut = cut

    def notify_load(self, workload_id: str) -> None:
        for listener in self._listeners:
            listener(workload_id)

    def serve(self, workload_id: str, serving: ServiceBackends) -> None:
        """Replace what is known about a service; waiting requests try again."""
        service = self._service(workload_id)
        if service.serving == serving:
            return
        self._replace(service, serving)
        for _ in range(len(service.waiting)):
            self.call_next(service)

    def _replace(self, service: Service, serving: ServiceBackends) -> None:
        ended = service.serving.running - serving.running
        service.serving = serving
        for pod_id, _ in ended:
            self._cut(pod_id)

    def pods(self, workload_id: str) -> tuple[str, ...]:
        """The pods that answer now."""
        service = self._services.get(workload_id)
        return () if service is None else service.serving.pods

    def release(self, workload_id: str) -> None:
        """The workload is gone; requests that wait for it fail."""
        service = self._services.pop(workload_id, None)
        if service is not None:
            self._replace(service, ServiceBackends())
            while service.waiting:
                self.call_next(service)

    def begin(self, workload_id: str) -> PendingRequest:
        """A request has arrived."""
        service = self._service(workload_id)
        now = self._measure()
        service.rates.enter(now)
        if service.serving.is_scaled and now >= service.next_notification:
            service.next_notification = now + self._window / 1000 / _NOTIFICATIONS
            self.notify_load(workload_id)
        return PendingRequest(self, workload_id, service, now)

    def end(self, request: PendingRequest, is_timed: bool) -> None:
        now = self._measure()
        pod = request.pod_id
        seconds = now - request.began if is_timed and pod else None
        request.service.rates.leave(now, seconds)
        request.leave_pod()
        if pod and seconds is not None:
            counted = request.service.pods
            totals = counted.setdefault(pod, Totals())
            totals.requests += 1
            totals.count(seconds)
            if len(counted) > _COUNTED_PODS:
                del counted[next(iter(counted))]

    def call_next(self, service: Service) -> None:
        """Let the request that has waited longest try again."""
        while service.waiting:
            future = service.waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    def load(self, workload_id: str) -> Load:
        """The load of a service."""
        service = self._services.get(workload_id)
        if service is None:
            return Load(window=self._window, counted_since=self._clock())
        now, window = self._measure(), self._window / 1000
        return Load(
            in_flight=service.rates.in_flight,
            short=service.rates.over(now, window / 10),
            long=service.rates.over(now, window),
            window=self._window,
            counted_since=service.counted_since,
            busy=dict(service.busy),
        )

    def totals(self) -> dict[str, tuple[int, int, float]]:
        """By workload and by pod, since the start: requests, completed answers, and the seconds that they took."""
        totals = {id: service.rates.totals for id, service in self._services.items()}
        for service in self._services.values():
            totals |= service.pods
        return {id: (each.requests, each.answers, each.latency) for id, each in totals.items()}

    def _service(self, workload_id: str) -> Service:
        service = self._services.get(workload_id)
        if service is None:
            rates = RequestRates(self._window / 1000, self._measure())
            service = self._services[workload_id] = Service(rates, self._clock())
        return service
