"""Services that speak gRPC behind the proxy, called by a real client: all ways of calling, who may, load, many pods."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.e2e.grpc_programs import Caller, spec_of
from tests.e2e.server import Server, until
from tests.e2e.serving import delete, start, until_pods, url_of
from tests.e2e.web import fetch


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    arguments = ("--personal", "--retry-delay", "20", "--scaling-window", "2", "--proxy-port", "0")
    server = Server(tmp_path_factory.mktemp("grpc") / "data", *arguments).start()
    yield server
    server.close()


def test_all_four_ways_of_calling(server: Server, tmp_path: Path) -> None:
    workload_id = start(server, "echo", spec_of(tmp_path, 8201))
    server.until_phase(workload_id, "Running")
    with Caller(url_of(server, workload_id)) as caller:
        assert caller.whole("Whole", b"hello") == b"hello for nobody "
        assert caller.trailing("Whole") == {"last-word": "good bye"}
        assert list(caller.stream("Count", b"5")) == [b"0", b"1", b"2", b"3", b"4"]
        # More than fits into any window on the way.
        assert caller.collect("Total", (b"x" * 1_000_000 for _ in range(3))) == b"3000000"
        words = [b"abc" * 50_000, b"", b"de"]
        assert caller.talk("Both", iter(words)) == [word[::-1] for word in words]
        with pytest.raises(grpc.RpcError) as failure:
            caller.whole("Fail")
        assert (failure.value.code(), failure.value.details()) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "not today: \N{LATIN SMALL LETTER A WITH DIAERESIS}",
        )
    delete(server, workload_id)


def test_a_call_that_is_given_up_ends_in_the_pod(server: Server, tmp_path: Path) -> None:
    workload_id = start(server, "endless", spec_of(tmp_path, 8202))
    server.until_phase(workload_id, "Running")
    with Caller(url_of(server, workload_id)) as caller:
        answers = caller.stream("Endless")
        assert next(answers) == b"x" * 1000
        assert not (tmp_path / "given-up").exists()
        answers.cancel()
        until((tmp_path / "given-up").exists, "the end of the call in the pod")
        assert caller.whole("Whole", b"more") == b"more for nobody "
    delete(server, workload_id)


def test_who_may_call_is_checked_on_every_stream(server: Server, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 8203, serving={"authorizationType": "authenticatedUsers"})
    workload_id = start(server, "guarded", spec)
    server.until_phase(workload_id, "Running")
    url = url_of(server, workload_id)
    with Caller(url) as nobody:
        for _ in range(2):
            with pytest.raises(grpc.RpcError) as refused:
                nobody.whole("Whole")
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert "access token" in str(refused.value.details())
    with Caller(url, server.token) as caller:
        # Who calls is told to the pod; the token is not.
        assert caller.whole("Whole", b"hello").startswith(b"hello for fairlead")
        assert b"authorization" not in caller.whole("Whole")
    with Caller(url.replace("guarded", "nowhere")) as lost, pytest.raises(grpc.RpcError) as unknown:
        lost.whole("Whole")
    assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED
    delete(server, workload_id)


def test_a_sleeping_service_wakes_and_streams_count_as_load(server: Server, tmp_path: Path) -> None:
    scaling = {"minReplicas": 0, "maxReplicas": 2, "metric": "concurrency", "metricThreshold": 2}
    spec = spec_of(tmp_path, 8204, autoscaling=scaling | {"initialReplicas": 0, "metricThresholdPercentage": 100})
    workload_id = start(server, "sleeper", spec)
    server.until_phase(workload_id, "Running")
    with Caller(url_of(server, workload_id)) as caller:
        assert caller.whole("Whole", b"awake") == b"awake for nobody "
        if os.geteuid() == 0:
            streams = [caller.stream("Endless") for _ in range(4)]
            assert all(next(stream) for stream in streams)
            until_pods(server, workload_id, 2)
            # Further calls on the same connection go to the pod that has less to do, as soon as it is ready.
            until(lambda: caller.whole("Name") == b"sleeper-00001-1", "an answer of the second pod")
            for stream in streams:
                stream.cancel()
    until_pods(server, workload_id, 0)
    delete(server, workload_id)


def test_a_pod_that_dies_in_the_middle_is_reported(server: Server, tmp_path: Path) -> None:
    workload_id = start(server, "dying", spec_of(tmp_path, 8205))
    server.until_phase(workload_id, "Running")
    with Caller(url_of(server, workload_id)) as caller:
        answers = caller.stream("Endless")
        next(answers)
        killer = threading.Timer(0, delete, (server, workload_id))
        killer.start()
        with pytest.raises(grpc.RpcError) as ended:
            for _ in answers:
                pass
        killer.join()
    assert ended.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def test_other_services_are_not_spoken_to_by_http2(server: Server, tmp_path: Path) -> None:
    """And one that speaks it is reached by HTTP/1.1 as far as its pod understands that."""
    workload_id = start(server, "plain", spec_of(tmp_path, 8206, serving={"protocol": "http"}))
    server.until_phase(workload_id, "Running")
    url = url_of(server, workload_id)
    with Caller(url) as caller, pytest.raises(grpc.RpcError) as refused:
        caller.whole("Whole")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "HTTP/1.1" in str(refused.value.details())
    assert fetch(url).status in (400, 502)
    delete(server, workload_id)


@pytest.mark.debian("openssl")
def test_by_tls_http2_is_offered_for_its_host(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = "subjectAltName=DNS:localhost,DNS:sealed-default.localhost,IP:127.0.0.1"
    made += ["-addext", names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    words = ("--personal", "--proxy-port", "0", "--tls-certificate", str(certificate), "--tls-key", str(key))
    server = Server(tmp_path / "data", *words).start()
    server.authority = certificate
    try:
        workload_id = start(server, "sealed", spec_of(tmp_path, 8207))
        server.until_phase(workload_id, "Running")
        with Caller(url_of(server, workload_id), certificate=certificate.read_bytes()) as caller:
            assert caller.whole("Whole", b"hello") == b"hello for nobody "
    finally:
        server.close()


def test_urls_by_path_cannot_have_it(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--personal", "--proxy-port", "0", "--url-paths").start()
    try:
        failed = server.until_phase(start(server, "pathless", spec_of(tmp_path, 8208)), "Failed")
        assert "servingPort.protocol" in failed["phaseMessage"]
    finally:
        server.close()
