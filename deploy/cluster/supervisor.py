"""The first process of a cluster: starts programs as it is told, starts again what dies, and ends everything by ending.

Run by `sandbox.open_sandbox` inside the cluster's namespaces; told what to do over `control.sock` in the cluster's
folder by `control.py`. It knows no program by name.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.cluster import inside
from deploy.cluster.layout import Layout, load_layout

#: What died is started again after this long, and twice as long each time, unless it had run for a while.
FIRST_DELAY, LONGEST_DELAY, LONG_ENOUGH = 0.5, 4.0, 20.0


@dataclass
class Program:
    name: str
    command: list[str]
    environment: dict[str, str]
    pid: int = 0
    started: float = 0.0
    delay: float = FIRST_DELAY
    #: When to start it again; None while it runs or is not wanted.
    due: float | None = None
    restarts: int = 0
    wanted: bool = True
    #: Whether to forget it when it has ended.
    dropped: bool = False
    last_exit: int | None = None


@dataclass
class Supervisor:
    layout: Layout
    programs: dict[str, Program] = field(default_factory=dict)

    def start(self, program: Program) -> None:
        log = open(self.layout.path("logs", f"{program.name}.log"), "ab")  # noqa: SIM115 - closed below, with the fork
        process = subprocess.Popen(
            program.command,
            cwd=self.layout.folder,
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        program.pid, program.started, program.due = process.pid, time.monotonic(), None
        # Reaped by number, with everything that containers leave behind; the object would wait for it too.
        process.returncode = 0

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for program in list(self.programs.values()):
                if program.pid == pid:
                    self.note_exit(program, os.waitstatus_to_exitcode(status))

    def note_exit(self, program: Program, code: int) -> None:
        now = time.monotonic()
        program.pid, program.last_exit = 0, code
        sys.stderr.write(f"{program.name} ended with {code}\n")
        sys.stderr.flush()
        if program.dropped:
            del self.programs[program.name]
        if not program.wanted:
            return
        if now - program.started > LONG_ENOUGH:
            program.delay = FIRST_DELAY
        program.due = now + program.delay
        program.delay = min(program.delay * 2, LONGEST_DELAY)

    def start_due(self) -> float | None:
        """Seconds until the next one is due."""
        now = time.monotonic()
        for program in self.programs.values():
            if program.due is not None and program.due <= now:
                program.restarts += 1
                self.start(program)
        waiting = [program.due for program in self.programs.values() if program.due is not None]
        return max(0.0, min(waiting) - now) if waiting else None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request.get("name", "")
        if request["do"] in ("start", "stop", "kill") and name not in self.programs and "command" not in request:
            return {"error": f"there is no program {name}; there are {', '.join(sorted(self.programs)) or 'none yet'}"}
        match request["do"]:
            case "start":
                program = self.programs.get(name)
                if program is None or (request.get("command") and request["command"] != program.command):
                    if program is not None:
                        # Two of a name would be in each other's way, and only one would be known here.
                        self.send(name, signal.SIGKILL)
                    program = self.programs[name] = Program(name, request["command"], request["environment"])
                program.wanted, program.dropped = True, False
                if not program.pid:
                    self.start(program)
            case "stop":
                self.stop(self.programs[name], request.get("dropped", False))
                return {}
            case "kill":
                self.send(name, signal.Signals(request["signal"]))
            case "status":
                return {"programs": {one.name: describe(one) for one in self.programs.values()}}
            case other:
                return {"error": f"no such order: {other}"}
        return {"pid": self.programs[name].pid}

    def stop(self, program: Program, dropped: bool) -> None:
        program.wanted, program.dropped, program.due = False, dropped, None
        if program.pid:
            os.kill(program.pid, signal.SIGKILL)
        elif dropped:
            del self.programs[program.name]

    def send(self, name: str, number: signal.Signals) -> None:
        pid = self.programs[name].pid
        if pid:
            os.kill(pid, number)


def describe(program: Program) -> dict[str, Any]:
    return {
        "pid": program.pid,
        "seconds": round(time.monotonic() - program.started, 1) if program.pid else 0,
        "restarts": program.restarts,
        "last_exit": program.last_exit,
        "wanted": program.wanted,
    }


def serve(supervisor: Supervisor) -> None:
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(supervisor.layout.folder, os.O_PATH)
    # Through the open folder, because a socket's path may have 107 letters only.
    listener.bind(f"/proc/self/fd/{folder}/control.sock")
    listener.listen()
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(reading, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select(supervisor.start_due()):
                if key.fileobj is listener:
                    converse(supervisor, listener)
                else:
                    os.read(reading, 4096)
            supervisor.reap()


def converse(supervisor: Supervisor, listener: socket.socket) -> None:
    """One request, one answer, each a line; a caller that is silent for long is left."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rw") as stream:
        connection.settimeout(10)
        try:
            answer = supervisor.answer(json.loads(stream.readline()))
        except (OSError, ValueError, KeyError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        try:
            stream.write(json.dumps(answer) + "\n")
            stream.flush()
        except OSError as error:
            sys.stderr.write(f"nobody took the answer: {error}\n")


def main() -> int:
    layout = load_layout(Path(sys.argv[1]))
    if layout is None or sys.stdin.readline() != "connected\n":
        sys.stderr.write("the cluster was not connected\n")
        return 1
    inside.furnish(layout)
    serve(Supervisor(layout))
    return 0


if __name__ == "__main__":
    sys.exit(main())
