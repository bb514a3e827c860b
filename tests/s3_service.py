"""A real S3 service (moto's server) for tests that look at buckets from both sides."""

import contextlib
import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator

#: The service wants to see a signature and does not check it.
SOMEBODY = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
}


class Service:
    """A running S3 service."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, SOMEBODY)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def make(self, bucket: str, **objects: str) -> None:
        assert self.call("PUT", f"/{bucket}")[0] == 200
        for key, text in objects.items():
            assert self.call("PUT", f"/{bucket}/{key.replace('__', '/')}", text.encode())[0] == 200

    def get(self, bucket: str, key: str) -> str | None:
        status, body = self.call("GET", f"/{bucket}/{key}")
        return body.decode() if status == 200 else None


@contextlib.contextmanager
def serving() -> Iterator[Service]:
    """A service on a port of its own, with nothing in it."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    for line in process.stderr:
        if b"Running on" in line:
            break
    try:
        yield Service(port)
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
