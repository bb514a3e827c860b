"""Who answers a request, who waits for it, and what is counted meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead.control.serving.request_rates import RequestRates
from fairlead.control.serving.traffic import PendingRequest, ServiceBackends, Traffic


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def traffic(time: Time | None = None, **serving: Any) -> Traffic:
    made = Traffic(lambda: 0, time or Time())
    members: dict[str, Any] = {"pods": ("a", "b"), "holds": True} | serving
    made.serve("w", ServiceBackends(**members))
    return made


def in_loop(test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(run())


async def pod_of(visit: PendingRequest) -> str:
    """As the proxy does it: ask, and wait for another try."""
    while not (pod := visit.find_pod()):
        await visit.wait()
    return pod


def test_the_pod_with_the_least_to_do_answers() -> None:
    requests = traffic()
    visits = [requests.begin("w") for _ in range(4)]
    assert sorted(visit.find_pod() for visit in visits) == ["a", "a", "b", "b"]
    busy = [visit for visit in visits if visit.pod_id == "a"]
    for visit in busy:
        visit.end()
    assert requests.begin("w").find_pod() == "a"


def test_equals_take_turns_and_those_passed_over_are_left_out() -> None:
    requests = traffic()
    seen = set()
    for _ in range(4):
        visit = requests.begin("w")
        seen.add(visit.find_pod())
        visit.end()
    assert seen == {"a", "b"}
    visit = requests.begin("w")
    assert visit.find_pod(frozenset({"a"})) == "b"
    assert visit.find_pod(frozenset({"a", "b"})) == ""
    assert requests.load("w").busy == {}


def test_a_request_waits_until_there_is_a_pod() -> None:
    async def test() -> None:
        requests = traffic(pods=())
        told: list[str] = []
        requests.listen(told.append)
        waiting = asyncio.ensure_future(pod_of(requests.begin("w")))
        await asyncio.sleep(0)
        assert told == ["w"]
        assert requests.load("w").in_flight == 1
        requests.serve("w", ServiceBackends(pods=("a",), holds=True))
        assert await waiting == "a"

    in_loop(test)


def test_beyond_the_limit_requests_wait_for_their_turn() -> None:
    async def test() -> None:
        requests = traffic(pods=("a",), limit=1)
        first = requests.begin("w")
        assert first.find_pod() == "a"
        second, third = requests.begin("w"), requests.begin("w")
        order: list[PendingRequest] = []

        async def answered(visit: PendingRequest) -> None:
            await pod_of(visit)
            order.append(visit)
            visit.end()

        waiting = [asyncio.ensure_future(answered(visit)) for visit in (second, third)]
        await asyncio.sleep(0)
        first.end()
        await asyncio.gather(*waiting)
        assert order == [second, third]
        assert requests.load("w").in_flight == 0

    in_loop(test)


def test_a_caller_that_gives_up_lets_the_next_continue() -> None:
    async def test() -> None:
        requests = traffic(pods=("a",), limit=1)
        first = requests.begin("w")
        first.find_pod()
        impatient = asyncio.ensure_future(pod_of(requests.begin("w")))
        patient = asyncio.ensure_future(pod_of(requests.begin("w")))
        await asyncio.sleep(0)
        first.end()
        impatient.cancel()
        assert await patient == "a"

    in_loop(test)


def test_a_draining_pod_is_reported_when_it_has_answered_its_last_request() -> None:
    requests = traffic()
    told: list[str] = []
    requests.listen(told.append)
    visit = requests.begin("w")
    pod = visit.find_pod()
    requests.serve("w", ServiceBackends(pods=("c",), holds=True))
    assert requests.load("w").busy == {pod: 1}
    assert told == []
    visit.end()
    assert (told, requests.load("w").busy) == (["w"], {})


def test_arrivals_notify_the_loop_now_and_then() -> None:
    time = Time()
    requests = traffic(time, is_scaled=True)
    told: list[str] = []
    requests.listen(told.append)
    for _ in range(10):
        requests.begin("w")
    time.now += 1.0
    requests.begin("w")
    assert told == ["w", "w"]


def test_means_over_the_last_moments() -> None:
    rates = RequestRates(60.0, 1000.0)
    for _ in range(3):
        rates.enter(1060.0)
    for _ in range(3):
        rates.leave(1070.0, 10.0)
    long = rates.over(1090.0, 60.0)
    assert long.concurrency == pytest.approx(0.5)
    assert long.throughput == pytest.approx(0.05)
    assert long.latency == pytest.approx(10_000)
    short = rates.over(1090.0, 6.0)
    assert (short.concurrency, short.throughput, short.latency) == (0.0, 0.0, None)
    assert rates.over(1200.0, 60.0).concurrency == 0.0


def test_a_request_that_lasts_counts_all_the_time() -> None:
    rates = RequestRates(60.0, 0.0)
    rates.enter(100.0)
    assert rates.over(1000.0, 60.0).concurrency == pytest.approx(1.0, abs=0.05)
    assert rates.over(1000.0, 6.0).concurrency == pytest.approx(1.0, abs=0.2)
    assert rates.over(1000.0, 60.0).throughput == 0.0


def test_a_short_past_is_not_thinned_out() -> None:
    rates = RequestRates(60.0, 0.0)
    rates.enter(2.0)
    assert rates.over(4.0, 60.0).concurrency == pytest.approx(0.5)


def test_the_end_of_an_attempt_is_reported_once() -> None:
    """Of a pod that ends, is started again under its id, or goes with its workload; not of one that is not ready."""
    requests = traffic(running=frozenset({("a", 1), ("b", 1), ("c", 1)}))
    told: list[str] = []
    requests.listen_for_ends(told.append)
    requests.serve("w", ServiceBackends(pods=("a",), running=frozenset({("a", 1), ("b", 2)})))
    assert sorted(told) == ["b", "c"]
    requests.release("w")
    assert sorted(told) == ["a", "b", "b", "c"]
