"""A raw-socket HTTP client that keeps many connections busy from one core. Run as its own process by `submissions`.

Reads a plan as JSON on standard input, sends as fast as answers come, and prints the latencies as JSON. It knows
nothing of HTTP beyond what our server answers: a status line, headers with a content length, a body.
"""

import json
import os
import selectors
import socket
import sys
import time
from dataclasses import dataclass


@dataclass
class Connection:
    socket: socket.socket
    sent_at: int = 0
    received: bytes = b""


class Load:
    def __init__(self, plan: dict[str, object]) -> None:
        self.host, self.port = str(plan["host"]), int(str(plan["port"]))
        self.connections = int(str(plan["connections"]))
        self.requests = int(str(plan["requests"]))
        self.prefix = str(plan["prefix"])
        self.body = str(plan["body"])
        self.head = (
            f"POST {plan['path']} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Authorization: Bearer {plan['token']}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        self.sent = 0
        self.latencies: list[int] = []
        self.statuses: dict[str, int] = {}

    def next_request(self) -> bytes:
        body = self.body.replace("NAME", f"{self.prefix}-{self.sent}")
        self.sent += 1
        return f"{self.head}{len(body)}\r\n\r\n{body}".encode()

    def send(self, connection: Connection) -> None:
        connection.received = b""
        connection.sent_at = time.perf_counter_ns()
        connection.socket.sendall(self.next_request())

    def receive(self, connection: Connection) -> bool:
        """Whether a whole answer is there."""
        chunk = connection.socket.recv(65536)
        if not chunk:
            raise SystemExit("the server closed a connection in the middle of the load")
        connection.received += chunk
        head, separator, body = connection.received.partition(b"\r\n\r\n")
        if not separator:
            return False
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        if len(body) < length:
            return False
        self.latencies.append(time.perf_counter_ns() - connection.sent_at)
        status = head[9:12].decode()
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status != "202" and self.statuses[status] == 1:
            print(connection.received.decode(errors="replace"), file=sys.stderr)
        return True

    def run(self) -> dict[str, object]:
        selector = selectors.EpollSelector()
        for _ in range(self.connections):
            opened = socket.create_connection((self.host, self.port))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ, Connection(opened))
        began = time.perf_counter_ns()
        for key in list(selector.get_map().values()):
            self.send(key.data)
        while len(self.latencies) < self.requests:
            for key, _ in selector.select():
                if self.receive(key.data) and self.sent < self.requests:
                    self.send(key.data)
        took = time.perf_counter_ns() - began
        return {"seconds": took / 1e9, "latencies": self.latencies, "statuses": self.statuses}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    os.sched_setaffinity(0, {given["core"]})
    json.dump(Load(given).run(), sys.stdout)
