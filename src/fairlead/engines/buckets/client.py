"""A small client of the S3 interface: list, read, write, remove, signed with version 4 of Amazon's signatures.

Used by `copying.py` alone. It speaks HTTP over one connection that is made again when it breaks; buckets are addressed
by path, which every service understands. It is not a library's, because it runs where there is only Python itself: in
containers of a stock Python image, into which a ConfigMap puts these files, and in pods' processes on this machine,
which have no site packages. Libraries would bring 15 MB with a compiled part (obstore) or nine packages (minio).
"""

import encodings.idna  # noqa: F401 - loaded by name when a host is looked up, which may be too late then
import errno
import hashlib
import hmac
import http.client
import os
import ssl
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, Self
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

_EMPTY = hashlib.sha256(b"").hexdigest()
_CHUNK = 1024 * 1024
_UNESCAPED = "-._~"
_RETRIES = 3


class BucketSource(Protocol):
    """A bucket, the credentials for it, and how long copying it and silence of its service may last, in seconds."""

    @property
    def url(self) -> str: ...
    @property
    def bucket(self) -> str: ...
    @property
    def access(self) -> str: ...
    @property
    def secret(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def silence(self) -> float: ...


class BucketObject(NamedTuple):
    """An object of a bucket."""

    key: str
    size: int


class Bucket:
    """One bucket, with the credentials for it; raises OSError with the service's own message."""

    def __init__(self, source: BucketSource) -> None:
        self._bucket = source.bucket
        self._access = source.access
        self._secret = source.secret
        self._region = "us-east-1"
        self._silence = source.silence
        self._deadline = time.monotonic() + source.seconds
        parts = urlsplit(source.url)
        self._is_secure = parts.scheme == "https"
        self._host = parts.netloc.rpartition("@")[2]
        self._prefix = parts.path.rstrip("/")
        self._connection: http.client.HTTPConnection | None = None
        #: Called with the number of bytes of a file, as they are sent.
        self.on_sent: Callable[[int], None] = _ignore

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._disconnect()

    def list(self) -> Iterator[BucketObject]:
        token = ""
        while True:
            query = {"list-type": "2", **({"continuation-token": token} if token else {})}
            _, body = self._call("GET", "", query)
            root = ElementTree.fromstring(body)
            space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
            for item in root.iter(f"{space}Contents"):
                key, size = item.findtext(f"{space}Key"), item.findtext(f"{space}Size")
                if key:
                    yield BucketObject(key, int(size or 0))
            token = root.findtext(f"{space}NextContinuationToken") or ""
            if not token:
                return

    def read(self, key: str) -> Iterator[bytes]:
        response = self._request("GET", key, {}, b"", _EMPTY)
        self._check(response, key)
        while piece := response.read(_CHUNK):
            self._check_time()
            yield piece

    def write(self, key: str, file: int) -> None:
        """Send an open file as the object of that key."""
        digest, size = hashlib.sha256(), os.fstat(file).st_size
        for piece in _pieces(file, size):
            digest.update(piece)
        response = self._request("PUT", key, {}, file, digest.hexdigest(), size)
        self._check(response, key)
        response.read()

    def remove(self, key: str) -> None:
        self._call("DELETE", key, {})

    def _call(self, method: str, key: str, query: dict[str, str]) -> tuple[int, bytes]:
        response = self._request(method, key, query, b"", _EMPTY)
        self._check(response, key)
        return response.status, response.read()

    def _check(self, response: http.client.HTTPResponse, key: str) -> None:
        if response.status < 300:
            return
        message = _error_message(response.read(65_536)) or response.reason
        subject = f"bucket '{self._bucket}'" + (f", object '{key}'" if key else "")
        raise OSError(errno.EIO, f"{subject}: the S3 service answers {response.status}: {message}")

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise OSError(errno.ETIMEDOUT, f"bucket '{self._bucket}' could not be copied in time")

    def _request(
        self, method: str, key: str, query: dict[str, str], body: bytes | int, digest: str, size: int = 0
    ) -> http.client.HTTPResponse:
        """One request; repeated over a new connection if the old one broke, or if the service names another region."""
        for attempt in range(_RETRIES):
            self._check_time()
            path = f"{self._prefix}/{quote(self._bucket)}" + (f"/{quote(key, safe=f'/{_UNESCAPED}')}" if key else "/")
            line = "&".join(
                f"{quote(k, safe=_UNESCAPED)}={quote(v, safe=_UNESCAPED)}" for k, v in sorted(query.items())
            )
            headers = self._headers(method, path, line, digest)
            if method == "PUT":
                headers["Content-Length"] = str(size)
            try:
                response = self._send(method, path, line, headers, body, size)
            except (http.client.HTTPException, OSError) as error:
                self._disconnect()
                if attempt + 1 == _RETRIES or isinstance(error, ssl.SSLCertVerificationError):
                    raise OSError(errno.EIO, f"the S3 service at {self._host} cannot be reached: {error}") from error
                continue
            region = response.headers.get("x-amz-bucket-region")
            if response.status in (301, 307, 400) and region and region != self._region:
                response.read()
                self._move(region)
                continue
            return response
        raise OSError(errno.EIO, f"the S3 service at {self._host} cannot be reached")

    def _move(self, region: str) -> None:
        self._region = region
        if self._host.endswith("amazonaws.com"):
            self._disconnect()
            self._host = f"s3.{region}.amazonaws.com"

    def _send(
        self, method: str, path: str, line: str, headers: dict[str, str], body: bytes | int, size: int
    ) -> http.client.HTTPResponse:
        connection = self._connection
        if connection is None:
            kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
            connection = self._connection = kind(self._host, timeout=self._silence)
        target = f"{path}?{line}" if line else path
        content = self._counted(_pieces(body, size)) if isinstance(body, int) else body or None
        connection.request(method, target, content, headers)
        return connection.getresponse()

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece
            self.on_sent(len(piece))

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _headers(self, method: str, path: str, line: str, digest: str) -> dict[str, str]:
        headers = {"Host": self._host, "x-amz-content-sha256": digest}
        if not self._access:
            return headers
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers["x-amz-date"] = now
        signed = {name.lower(): value for name, value in headers.items()}
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        signature = sign(self._secret, scope, now, canonical_request(method, path, line, signed, digest))
        names = ";".join(sorted(signed))
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._access}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return headers


def _ignore(_size: int) -> None:
    return None


def canonical_request(method: str, path: str, line: str, headers: dict[str, str], digest: str) -> str:
    lines = "".join(f"{name}:{value.strip()}\n" for name, value in sorted(headers.items()))
    return "\n".join([method, path, line, lines, ";".join(sorted(headers)), digest])


def sign(secret: str, scope: str, now: str, request: str) -> str:
    """The signature of a canonical request, as Amazon describes it (AWS Signature Version 4)."""
    date, region, service, end = scope.split("/")
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, end):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()])
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _pieces(file: int, size: int) -> Iterator[bytes]:
    offset = 0
    while offset < size:
        piece = os.pread(file, min(_CHUNK, size - offset), offset)
        if not piece:
            raise OSError(errno.EIO, "a file became shorter while it was uploaded")
        offset += len(piece)
        yield piece


def _error_message(body: bytes) -> str:
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return ""
    code, message = root.findtext("Code") or "", root.findtext("Message") or ""
    return f"{code}: {message}".strip(": ")
