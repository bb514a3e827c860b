"""Buckets in a pod's volumes, against a real S3 service (moto's server): objects in, changes back."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.engines.base import PodState
from fairlead.model.pods.supplies import Supplies
from tests.contract.engine_harness import opened, scenario, shell
from tests.contract.storage_engine import ON_MACHINE, engine_maker, fail, files_with, nothing_left, personal, say
from tests.contract.test_local_engine import said, stop_of
from tests.contract.test_local_volumes import data
from tests.s3_service import Service, serving

__all__ = ["data"]
MODES = [pytest.param({}, id="shared"), pytest.param(personal(), id="personal")]
KEYS = Supplies(secrets={"keys": {"AccessKeyId": "AKIDEXAMPLE", "SecretKey": "very-secret-key", "id": "A", "sk": "B"}})


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


def bucket(service: Service, name: str, **members: Any) -> dict[str, Any]:
    return {"s3": [{"bucket": name, "path": "/bucket", "url": service.url, **members}]}


@pytest.mark.parametrize("mode", MODES)
class TestS3:
    @scenario
    async def test_s3_objects_are_files(self, data: Path, mode: dict[str, Any], service: Service) -> None:
        name = f"in-{'owner' in mode}".lower()
        service.make(name, top="1", deep__er__file="two words")
        async with opened(engine_maker(data, KEYS, **mode)) as harness:
            storage = bucket(service, name, accessKeySecret="keys")
            script = "cd /bucket; find . -type f | sort; cat top deep/er/file; stat -c ' %u' top; id -u"
            arguments = (await say(harness, script, **ON_MACHINE, storage=storage)).split()
            assert arguments[:4] == ["./deep/er/file", "./top", "1two", "words"]
            assert arguments[4] == arguments[5]
            assert files_with(data, "very-secret-key") == []
        await nothing_left(data)

    @scenario
    async def test_s3_changes_go_back_at_the_end(self, data: Path, mode: dict[str, Any], service: Service) -> None:
        name = f"out-{'owner' in mode}".lower()
        service.make(name, same="1", changed="before", removed="x")
        async with opened(engine_maker(data, KEYS, **mode)) as harness:
            script = "cd /bucket; echo after > changed; rm removed; mkdir new; echo 'a b' > 'new/odd name+'; exit 3"
            spec = shell(script, fields=ON_MACHINE | {"storage": bucket(service, name, accessKeySecret="keys")})
            assert (await harness.run(spec)).exit_code == 3
        assert service.get(name, "same") == "1"
        assert service.get(name, "changed") == "after\n"
        assert service.get(name, "removed") is None
        assert service.get(name, "new/odd%20name%2B") == "a b\n"

    @scenario
    async def test_s3_changes_are_written_back_when_it_is_stopped(
        self, data: Path, mode: dict[str, Any], service: Service
    ) -> None:
        name = f"stop-{'owner' in mode}".lower()
        service.make(name)
        async with opened(engine_maker(data, **mode)) as harness:
            spec = shell(
                "echo kept > /bucket/x; echo ready; sleep 600", fields=ON_MACHINE | {"storage": bucket(service, name)}
            )
            await harness.start(spec)
            await said(harness, spec, b"ready")
            await harness.engine.apply([stop_of(spec, 30)])
            await harness.until(spec, PodState.EXITED)
        assert service.get(name, "x") == "kept\n"

    @scenario
    async def test_s3_that_cannot_take_changes_back_fails_the_pod(
        self, data: Path, mode: dict[str, Any], service: Service
    ) -> None:
        name = f"gone-{'owner' in mode}".lower()
        service.make(name)
        async with opened(engine_maker(data, **mode)) as harness:
            spec = shell(
                "echo x > /bucket/x; echo ready; sleep 600", fields=ON_MACHINE | {"storage": bucket(service, name)}
            )
            await harness.start(spec)
            await said(harness, spec, b"ready")
            assert service.call("DELETE", f"/{name}")[0] == 204
            await harness.engine.apply([stop_of(spec, 30)])
            report = await harness.until(spec, PodState.EXITED)
            words = f"storage.s3[0]: bucket '{name}', object 'x': the S3 service answers 404: NoSuchBucket"
            assert words in report.message

    @scenario
    async def test_s3_message_of_the_service(self, data: Path, mode: dict[str, Any], service: Service) -> None:
        async with opened(engine_maker(data, **mode)) as harness:
            message = await fail(harness, **ON_MACHINE, storage=bucket(service, "no-such-bucket"))
            assert "storage.s3[0]: bucket 'no-such-bucket': the S3 service answers 404: NoSuchBucket" in message


@scenario
async def test_s3_key_names(data: Path, service: Service) -> None:
    service.make("named", a="1")
    async with opened(engine_maker(data, KEYS)) as harness:
        own = {"accessKeySecret": "keys", "secretKeyOfAccessKeyId": "id", "secretKeyOfSecretKey": "sk"}
        assert await say(harness, "cat /bucket/a", **ON_MACHINE, storage=bucket(service, "named", **own)) == "1"
        message = await fail(
            harness, **ON_MACHINE, storage=bucket(service, "named", **own | {"secretKeyOfSecretKey": "nothing"})
        )
        assert "secret 'keys' has no key 'nothing'" in message


@scenario
async def test_s3_key_that_is_not_a_path_below_the_volume(data: Path, service: Service) -> None:
    service.make("climbing")
    assert service.call("PUT", "/climbing/a/..%2F..%2F..%2Fetc%2Fx", b"no")[0] == 200
    async with opened(engine_maker(data)) as harness:
        assert "not a path below the volume" in await fail(harness, **ON_MACHINE, storage=bucket(service, "climbing"))


@scenario
async def test_s3_service_that_does_not_answer(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with opened(engine_maker(data, fetch_silence_seconds=1)) as harness:
            storage = {"s3": [{"bucket": "any", "path": "/bucket", "url": url}]}
            assert "cannot be reached: timed out" in await fail(harness, **ON_MACHINE, storage=storage)


class SlowService:
    """An empty bucket that takes longer than a second for the first file, and for the second as long as it is told."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.puts = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = [line.partition(":")[2] for line in head.splitlines() if line.startswith("content-length:")]
                await reader.readexactly(int(length[0]) if length else 0)
                body = b"" if head.startswith("put") else b"<ListBucketResult></ListBucketResult>"
                if head.startswith("put"):
                    self.puts += 1
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self.may_end.wait(), 1.2 if self.puts == 1 else None)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


@scenario
async def test_how_far_an_upload_is_and_that_its_pod_still_runs(data: Path) -> None:
    slow = SlowService()
    server = await asyncio.start_server(slow.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    storage = {"s3": [{"bucket": "results", "path": "/bucket", "url": f"http://127.0.0.1:{port}"}]}
    async with opened(engine_maker(data)) as harness:
        script = "cd /bucket; head -c 1500 /dev/zero > a; echo > b; echo done"
        spec = shell(script, fields=ON_MACHINE | {"storage": storage})
        started = await harness.start(spec)
        assert started.state is PodState.RUNNING, started
        assert await harness.output(spec, follow=True) == b"done\n", "its output is complete before the upload is"
        report = await harness.until_reason(spec, "Uploading")
        assert (report.state, report.exit_code) == (PodState.RUNNING, None)
        assert report.message == "Uploading to bucket results: 1 of 2 files, 1.5 kB of 1.5 kB"
        slow.may_end.set()
        report = await harness.until(spec, PodState.EXITED)
        assert (report.exit_code, report.reason, report.message) == (0, "", "")
    server.close()
