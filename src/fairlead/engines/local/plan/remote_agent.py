#!/usr/bin/env -S python3 -I -S
"""Runs a command in another pod of the same workload, called as `ssh` is: remote_agent.py [OPTION...] POD COMMAND...

A program of its own, put into pods that may start others (`remote_exec.py` says which); it asks the pod's supervisor
over the socket beside it and moves bytes. It imports the standard library only, and knows no address and no token.
"""

import json
import os
import select
import socket
import struct
import sys
import time

#: How long a pod that was placed together with this one may take to run.
PATIENCE_SECONDS = 300.0
RETRY_SECONDS = 0.05
#: Options of ssh that have a value; all options are ignored.
VALUED = ("-l", "-o", "-p", "-i", "-F", "-c", "-e", "-m")
HEADER = struct.Struct("!I")
PIECE = 65536


class SessionRefused(Exception):
    """The command cannot be run there."""


def read_words(words: list[str]) -> tuple[str, str]:
    """The pod and the command for its shell."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in VALUED and rest:
            rest.pop(0)
    if len(rest) < 2:
        raise SessionRefused("give the name of a pod and a command")
    return rest[0].rpartition("@")[2].partition(".")[0], " ".join(rest[1:])


def receive(link: socket.socket) -> tuple[dict[str, object], list[int]]:
    """The next message, empty at the end, and the open files that came with it."""
    data, files, wanted = b"", [], HEADER.size
    while len(data) < wanted:
        piece, given, _, _ = socket.recv_fds(link, wanted - len(data), 4)
        files += given
        if not piece:
            return {}, files
        data += piece
        if wanted == HEADER.size == len(data):
            wanted += HEADER.unpack(data)[0]
    return json.loads(data[HEADER.size :]), files


def open_session(path: str, pod: str, command: str) -> tuple[socket.socket, list[int]]:
    """The connection over which the exit code comes, and the command's input, output and error."""
    request = json.dumps({"pod": pod, "argv": ["/bin/sh", "-c", command]}).encode()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.connect(path)
        link.sendall(HEADER.pack(len(request)) + request)
        answer, files = receive(link)
        if len(files) == 3:
            return link, files
        link.close()
        if not answer or "exit" in answer or time.monotonic() > deadline:
            raise SessionRefused(str(answer.get("failed", "this pod may not run commands in others")))
        time.sleep(RETRY_SECONDS)


def carry(link: socket.socket, files: list[int]) -> int:
    """Move bytes both ways until the command has ended; its exit code."""
    given, *outputs = files
    ways = {0: given, outputs[0]: 1, outputs[1]: 2}
    for each in outputs:
        os.set_blocking(each, False)
    while True:
        ready, _, _ = select.select([link.fileno(), *ways], [], [])
        for source in [one for one in ready if one in ways]:
            move(ways, source)
        if link.fileno() in ready:
            answer, _ = receive(link)
            for source in [one for one in outputs if one in ways]:
                while move(ways, source):
                    pass
            return int(str(answer.get("exit", 255)))


def move(ways: dict[int, int], source: int) -> bool:
    """Pass one piece on; False if there is none now, or at the end."""
    try:
        data = os.read(source, PIECE)
        while data:
            data = data[os.write(ways[source], data) :]
            if not data:
                return True
    except BlockingIOError:
        return False
    except OSError:
        pass  # the reader is gone
    sink = ways.pop(source)
    if source == 0:
        os.close(sink)
    return False


def main() -> int:
    try:
        pod, command = read_words(sys.argv[1:])
        return carry(*open_session(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"), pod, command))
    except (SessionRefused, OSError) as error:
        sys.stderr.write(f"{' '.join(sys.argv[1:2])}: the command cannot be run there: {error}\n")
        return 255


if __name__ == "__main__":
    sys.exit(main())
