"""What people open into pods of a cluster with the command line: output, commands, terminals, connections."""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import STAYS
from tests.kubernetes.test_fields_network import web

pytestmark = pytest.mark.kubernetes


def fairlead(harness: ClusterHarness, *words: str) -> list[str]:
    return [sys.executable, "-m", "fairlead", "--data-dir", str(harness.server.data_dir), *words]


def run(harness: ClusterHarness, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(fairlead(harness, *words), input=stdin, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    return done


@contextmanager
def on_terminal(harness: ClusterHarness, *words: str) -> Iterator[int]:
    """A command with a terminal of its own: the other end of it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(fairlead(harness, *words), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    try:
        yield ours
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal: int, words: bytes) -> bytes:
    seen = b""
    while words not in seen:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, f"no {words!r}, only {seen!r}"
        seen += os.read(terminal, 65_536)
    return seen


def type_until(terminal: int, line: bytes, words: bytes) -> bytes:
    """What is typed before the terminal is passed on may be lost, as with a person who types too early."""
    seen, deadline = b"", time.monotonic() + PATIENCE
    while words not in seen:
        assert time.monotonic() < deadline, f"no {words!r}, only {seen!r}"
        os.write(terminal, line)
        while words not in seen and select.select([terminal], [], [], 2)[0]:
            seen += os.read(terminal, 65_536)
    return seen


def test_output_of_the_start_before(harness: ClusterHarness) -> None:
    """`restartPolicy` OnFailure restarts in place; the output of the earlier start is still there, and followed is the
    new one."""
    script = f"echo said; [ -e /mark/x ] && {{ echo once more; {STAYS}; }}; touch /mark/x; exit 3"
    scratch = {"emptyDirVolume": [{"path": "/mark"}]}
    workload = harness.submit(
        "training", "again", harness.real(script) | {"restartPolicy": "OnFailure", "storage": scratch}
    )
    until(lambda: "once more" in words(harness, workload), "the second start", PATIENCE)
    assert run(harness, "training", "logs", "again", "-p", harness.project).stdout == "said\nonce more\n"
    assert run(harness, "training", "logs", "again", "-p", harness.project, "--previous").stdout == "said\n"


def words(harness: ClusterHarness, workload: str) -> str:
    return harness.server.call("GET", f"/api/v1/workloads/{workload}/logs").body.decode()


def test_output_outlives_a_pod_that_a_suspension_deletes(harness: ClusterHarness) -> None:
    """With what it says after the signal."""
    script = "trap 'echo bye; exit 0' TERM; echo hello; while true; do sleep 0.1; done"
    workload = harness.submit("training", "talks", harness.real(script))
    until(lambda: "hello" in words(harness, workload), "its output", PATIENCE)
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    assert harness.objects("pods") == []
    until(lambda: words(harness, workload) == "hello\nbye\n", "what was kept", PATIENCE)
    assert run(harness, "training", "logs", "talks", "-p", harness.project, "--tail", "1").stdout == "bye\n"


def test_output_is_followed_and_can_be_cut(harness: ClusterHarness) -> None:
    script = "for n in 1 2 3; do echo line $n; sleep 1; done"
    harness.submit("training", "lines", harness.real(script))
    until(lambda: harness.objects("pods"), "its pod", PATIENCE)
    harness.until_phase(
        harness.server.call("GET", "/api/v1/workloads").json["workloads"][0]["id"], "Running", "Completed"
    )
    followed = run(harness, "training", "logs", "lines", "-p", harness.project, "--follow")
    assert followed.stdout == "line 1\nline 2\nline 3\n"
    assert run(harness, "training", "logs", "lines", "-p", harness.project, "--tail", "1").stdout == "line 3\n"
    stamped = run(harness, "training", "logs", "lines", "-p", harness.project, "--timestamps").stdout
    assert re.fullmatch(r"(\d{4}-\d\d-\d\dT\S+ line \d\n){3}", stamped), stamped


def test_a_terminal_in_a_pod(harness: ClusterHarness) -> None:
    workload = harness.submit("workspace", "desk", harness.real(STAYS))
    harness.until_phase(workload, "Running")
    with on_terminal(harness, "exec", "desk", "-p", harness.project, "--tty", "--stdin", "--", "sh") as terminal:
        read_until(terminal, b"# ")
        os.write(terminal, b"stty size; tty; echo $((6 * 7))\n")
        seen = read_until(terminal, b"42")
        assert b"/dev/" in seen
        os.write(terminal, b"exit\n")


def test_a_program_that_is_not_there(harness: ClusterHarness) -> None:
    workload = harness.submit("workspace", "bare", harness.real(STAYS))
    harness.until_phase(workload, "Running")
    for program, code in (("nonexist", 127), ("/etc/passwd", 126)):
        words = fairlead(harness, "exec", "bare", "-p", harness.project, "--", program)
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stdout, program in done.stderr) == (code, "", True), done


def test_attached_to_the_main_process(harness: ClusterHarness) -> None:
    """`stdin` and `tty`: what is typed reaches the program, which has a terminal; without, its output alone is seen."""
    spec = harness.real("while :; do read line && test -t 0 && echo on a terminal, heard $line; done")
    soon = {"terminationGracePeriodSeconds": 1}
    workload = harness.submit("workspace", "typed", spec | {"stdin": True, "tty": True} | soon)
    harness.until_phase(workload, "Running")
    with on_terminal(harness, "attach", "typed", "-p", harness.project) as terminal:
        seen = type_until(terminal, b"hello\n", b"terminal, heard hello")
        assert b"on a terminal" in seen
        harness.act("delete", workload, "workspace")
    plain = harness.submit("training", "speaks", harness.real("while :; do echo word; sleep 1; done") | soon)
    harness.until_phase(plain, "Running")
    command = fairlead(harness, "attach", "speaks", "-p", harness.project)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as attached:
        assert attached.stdout is not None
        assert attached.stdout.readline() == b"word\n"
        harness.act("delete", plain)
        attached.wait(PATIENCE)


def test_a_port_of_a_pod_on_this_machine(harness: ClusterHarness) -> None:
    workload = harness.submit("training", "served", web(harness))
    harness.until_phase(workload, "Running")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = fairlead(harness, "port-forward", "served", "-p", harness.project, "--port", f"{port}:8080")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
        try:
            until(lambda: is_open(port), "the port", PATIENCE)
            for _ in range(2):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as answer:
                    assert b"served-" in answer.read()
        finally:
            forwarding.terminate()


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
