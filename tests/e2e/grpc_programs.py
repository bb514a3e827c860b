"""A caller of gRPC, and the program of a pod that answers it: bytes without a schema, in all four ways of calling."""

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc

SERVICE = "fairlead.test.Echo"
#: What a pod runs: one method for each way, by whom it was called, and one that fails.
PROGRAM = f'''
import os, sys, time
from concurrent import futures
import grpc

def whole(request, context):
    user = dict(context.invocation_metadata()).get("x-forwarded-user", "nobody")
    kept = [name for name, _ in context.invocation_metadata() if name == "authorization"]
    context.set_trailing_metadata((("last-word", "good bye"),))
    return b"%s for %s %s" % (request, user.encode(), b"".join(name.encode() for name in kept))

def count(request, context):
    for number in range(int(request)):
        yield b"%d" % number
        time.sleep(0.01)

def endless(request, context):
    open(os.path.join(sys.argv[2], "began"), "w").close()
    context.add_callback(lambda: open(os.path.join(sys.argv[2], "given-up"), "w").close())
    while context.is_active():
        yield b"x" * 1000
        time.sleep(0.01)

def total(requests, context):
    return b"%d" % sum(len(each) for each in requests)

def both(requests, context):
    for each in requests:
        yield each[::-1]

def fail(request, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not today: ä")

def name(request, context):
    return os.uname().nodename.encode()

handlers = {{
    "Whole": grpc.unary_unary_rpc_method_handler(whole),
    "Count": grpc.unary_stream_rpc_method_handler(count),
    "Endless": grpc.unary_stream_rpc_method_handler(endless),
    "Total": grpc.stream_unary_rpc_method_handler(total),
    "Both": grpc.stream_stream_rpc_method_handler(both),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
    "Name": grpc.unary_unary_rpc_method_handler(name),
}}
server = grpc.server(futures.ThreadPoolExecutor(32))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("{SERVICE}", handlers),))
server.add_insecure_port(f"0.0.0.0:{{sys.argv[1]}}")
server.start()
server.wait_for_termination()
'''


def spec_of(folder: Path, port: int, **members: Any) -> dict[str, Any]:
    """The spec of a service that runs the program, which leaves notes in the folder."""
    program = folder / "service.py"
    program.write_text(PROGRAM)
    given = {"image": "python:3", "command": sys.executable, "args": f"{program} {port} {shlex.quote(str(folder))}"}
    return given | {"servingPort": {"container": port, "protocol": "grpc"} | members.pop("serving", {})} | members


class Caller:
    """Calls by a URL of the proxy, as somebody or nobody."""

    def __init__(self, url: str, token: str = "", certificate: bytes = b"") -> None:
        scheme, _, authority = url.rstrip("/").partition("://")
        host, _, port = authority.partition(":")
        # The name stands for the service; the proxy itself is on this machine.
        options: list[tuple[str, Any]] = [("grpc.default_authority", authority), ("grpc.enable_retries", 0)]
        if scheme == "https":
            options = [("grpc.ssl_target_name_override", host), ("grpc.enable_retries", 0)]
            credentials = grpc.ssl_channel_credentials(certificate)
            self.channel = grpc.secure_channel(f"127.0.0.1:{port}", credentials, options)
        else:
            self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
        self.metadata = (("authorization", f"Bearer {token}"),) if token else ()

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def _with(self, way: Callable[..., Any], method: str) -> Callable[[Any], Any]:
        called = way(f"/{SERVICE}/{method}")
        return lambda given: called(given, metadata=self.metadata, timeout=60)

    def whole(self, method: str, request: bytes = b"") -> bytes:
        answer: bytes = self._with(self.channel.unary_unary, method)(request)
        return answer

    def trailing(self, method: str, request: bytes = b"") -> dict[str, str | bytes]:
        called: Any = self.channel.unary_unary(f"/{SERVICE}/{method}")
        _, call = called.with_call(request, metadata=self.metadata, timeout=60)
        return dict(call.trailing_metadata())

    def stream(self, method: str, request: bytes = b"") -> Any:
        """A call that can be read from, and given up."""
        return self._with(self.channel.unary_stream, method)(request)

    def collect(self, method: str, requests: Iterator[bytes]) -> bytes:
        answer: bytes = self._with(self.channel.stream_unary, method)(requests)
        return answer

    def talk(self, method: str, requests: Iterator[bytes]) -> list[bytes]:
        return list(self._with(self.channel.stream_stream, method)(requests))
