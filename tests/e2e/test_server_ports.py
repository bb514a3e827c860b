"""The port of a server that is down: pods of a shared server cannot take it, and the server gets it back."""

import os
import shlex
import socket
from collections.abc import Callable

import pytest

from tests.e2e.server import Server, until

#: Waits until nobody listens on the server's port, then tries to listen there in every way that there is.
THIEF = """
import errno, itertools, socket, sys, time
port = int(sys.argv[1])
while socket.socket().connect_ex(("127.0.0.1", port)) != errno.ECONNREFUSED:
    time.sleep(0.01)
for address, *options in itertools.product(("127.0.0.1", "0.0.0.0"), (0, 1), (0, 1)):
    made = socket.socket()
    for option, value in zip((socket.SO_REUSEADDR, socket.SO_REUSEPORT), options):
        made.setsockopt(socket.SOL_SOCKET, option, value)
    try:
        made.bind((address, port))
        made.listen()
        print("taken", address, options, flush=True)
        time.sleep(600)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
print("tried", flush=True)
time.sleep(600)
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="pods of a server that is not root are its own user's")
def test_a_pod_cannot_take_the_port_of_a_server_that_is_down(make_server: Callable[..., Server], port: int) -> None:
    server = make_server("--allow", "host-namespaces", "--port", str(port), "--proxy-port", "0")
    arguments = shlex.join(["-c", THIEF, str(port)])
    thief = server.run("thief", "/usr/bin/python3", arguments, security={"hostNetwork": True})
    server.until_phase(thief, "Running")
    output = server.data_dir / "pods" / "logs"
    for _ in range(2):
        server.kill()
        until(lambda: any(b"tried" in file.read_bytes() for file in output.rglob("1.*")), "its attempts")
        server.start()
        assert server.url.endswith(f":{port}")
    assert server.logs(thief).split() == ["EADDRINUSE"] * 8 + ["tried"]
