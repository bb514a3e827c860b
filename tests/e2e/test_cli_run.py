"""The first minute: `fairlead run` from nothing, and the server that it starts in the background."""

import contextlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import COMMAND, Caller, surroundings
from tests.e2e.server import Server, until


@pytest.fixture
def fairlead(tmp_path: Path) -> Iterator[Caller]:
    """The command of somebody who never used it; whatever it started is gone afterwards."""
    folder = tmp_path / "work"
    folder.mkdir()
    caller = Caller(tmp_path / "data", folder)
    yield caller
    caller("server", "stop")
    Server(caller.data_dir).close()


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """The command of somebody whose server runs already."""
    base = tmp_path_factory.mktemp("warm")
    (base / "work").mkdir()
    caller = Caller(base / "data", base / "work")
    caller.ok("server", "start")
    yield caller
    caller("server", "stop")
    Server(caller.data_dir).close()


def test_from_nothing_to_hello(fairlead: Caller) -> None:
    called = fairlead("run", "--", "python3", "-c", "print('hello')")
    assert (called.code, called.out) == (0, "hello\n")
    assert "Starting a server in the background" in called.err
    told = json.loads(fairlead.ok("server", "status", "--json"))
    assert told["healthy"]
    assert told["dataDir"] == str(fairlead.data_dir)
    again = fairlead("run", "--", "echo", "again")
    assert (again.code, again.out) == (0, "again\n")
    assert "Starting a server" not in again.err
    assert fairlead("server", "stop").err == "Stopped. Running workloads continue.\n"
    assert fairlead("server", "status").code == exit_codes.UNREACHABLE


def test_two_first_runs_start_one_server(fairlead: Caller) -> None:
    started = [fairlead.start("run", "--", "echo", str(number)) for number in range(3)]
    ended = [process.communicate(timeout=180) for process in started]
    assert [out for out, _ in ended] == ["0\n", "1\n", "2\n"]
    assert sum("Starting a server" in err for _, err in ended) == 1


def test_a_server_that_somebody_else_is_starting_is_waited_for(fairlead: Caller) -> None:
    serving = fairlead.start("serve", "--port", "0", "--personal", "--quiet")
    try:
        until(lambda: (fairlead.data_dir / "holder.lock").exists(), "the beginning of its start")
        called = fairlead("run", "--", "echo", "there")
        assert (called.code, called.out) == (0, "there\n")
        assert "Starting a server" not in called.err
        assert json.loads(fairlead.ok("server", "status", "--json"))["pid"] == serving.pid
        refused = fairlead("server", "restart")
        assert refused.code == exit_codes.FAILED
        assert "Restart it where it was started" in refused.err
    finally:
        serving.terminate()
        serving.communicate(timeout=180)


def test_a_restarted_server_keeps_its_flags_or_gets_others(fairlead: Caller) -> None:
    def nodes() -> list[str]:
        return fairlead.ok("node", "list", "-o", "name").splitlines()

    fairlead.ok("server", "start", "--", "--node", "one:cpu=2,memory=1Gi")
    assert nodes() == ["one"]
    again = fairlead("server", "start", "--", "--node", "two:cpu=2,memory=1Gi")
    assert "these flags have no effect" in again.err
    before = json.loads(fairlead.ok("server", "status", "--json"))["pid"]
    fairlead.ok("server", "restart")
    assert json.loads(fairlead.ok("server", "status", "--json"))["pid"] != before
    assert nodes() == ["one"]
    fairlead.ok("server", "restart", "--", "--node", "two:cpu=2,memory=1Gi")
    assert nodes() == ["two"]
    without = fairlead("server", "restart", "--")
    assert "Its flags have changed: it no longer has --node two:cpu=2,memory=1Gi." in without.err
    assert "two" not in nodes()


def test_a_taken_port_is_not_a_problem(fairlead: Caller) -> None:
    """Whether the usual port is free or somebody's, the server comes up and says where."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", 7420))
            taken.listen()
        assert fairlead.ok("run", "--", "echo", "here") == "here\n"
        url = json.loads(fairlead.ok("server", "status", "--json"))["url"]
        # Somebody else who had it may have left in the meantime.
        is_ours = taken.getsockname()[1] == 7420
        assert not is_ours or url != "http://127.0.0.1:7420"


def test_a_server_that_does_not_start_says_why(fairlead: Caller) -> None:
    fairlead.data_dir.mkdir()
    (fairlead.data_dir / "fairlead.db").write_text("this is no database, and never was one; so it is refused")
    called = fairlead("run", "--", "true")
    assert called.code == exit_codes.RUN_FAILED
    assert "The server did not start. The end of its log" in called.err
    assert "database" in called.err.partition("server.log:")[2]


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["sh", "-c", "exit 3"], 3, id="its own"),
        pytest.param(["sh", "-c", "kill -TERM $$"], 143, id="of a signal"),
        pytest.param(["no-such-command-here"], 127, id="no such command"),
        pytest.param(["true"], 0, id="none"),
    ],
)
def test_the_exit_code_is_the_commands(warm: Caller, words: list[str], want: int) -> None:
    assert warm("run", "--", *words).code == want


def test_it_runs_as_in_the_callers_shell(warm: Caller) -> None:
    script = 'pwd; id -u; echo "$A-$B-${C:-unset}"; for x in 1; do echo ${x} $(echo nested); done'
    called = warm("run", "--env", "A=1 2", "--env", "B", "--", "sh", "-c", script, B="from here", C="of the shell")
    assert called.out == f"{warm.folder}\n{os.getuid()}\n1 2-from here-of the shell\n1 nested\n"


def test_what_waits_is_not_said_to_run(warm: Caller) -> None:
    refused = warm("run", "--detach", "--name", "too-large", "--gpu", "100", "--", "true")
    assert (refused.code, refused.out) == (exit_codes.RUN_FAILED, "")
    assert refused.err.startswith("fairlead: Can never start: ")
    assert "--allow-pending submits it" in refused.err
    called = warm("run", "--allow-pending", "--detach", "--name", "too-large", "--gpu", "100", "--", "true")
    assert (called.code, called.out) == (0, "too-large\n")
    assert "in the background as soon as there is room" in called.err
    called = warm("run", "--detach", "--name", "later", "--after", "any:too-large", "--", "true")
    assert "in the background after too-large, as soon as there is room" in called.err
    warm.ok("training", "delete", "later")
    warm.ok("training", "delete", "too-large")


def test_who_types_d_to_detach_gets_a_hint(warm: Caller) -> None:
    assert "--detach returns at once" in warm("run", "-d", "--", "true").err
    assert "--detach returns" not in warm("run", "-d", "--detach", "--", "true").err
    assert "--detach returns" not in warm("run", "--", "true").err


def test_name_and_resources(warm: Caller) -> None:
    words = ("--name", "sized", "--cpu", "0.2", "--memory", "64Mi", "--project", "default", "--detach")
    assert warm.ok("run", *words, "--", "true") == "sized\n"
    decoded = json.loads(warm.ok("describe", "sized", "--json"))
    assert decoded["podsRequestedResources"]["cpu"]["request"] == 0.2
    assert decoded["images"] == ["fairlead.local/host"]
    assert decoded["source"] in ("CLI", "Control-plane")


def test_an_image_that_is_not_used_is_noted(warm: Caller) -> None:
    called = warm("run", "--image", "python:3", "--", "echo", "hi")
    assert (called.code, called.out) == (0, "hi\n")
    assert "Note: image: not used" in called.err
    assert "Note" not in warm("run", "--", "true").err
    submitted = warm("training", "submit", "noted", "--image", "python:3", "-c", "--", "true")
    assert "Note: image: not used" in submitted.err
    assert "The container image. Required." not in warm.ok("run", "--help")


def test_what_run_made_can_be_applied_as_yaml(warm: Caller) -> None:
    warm.ok("run", "--name", "again", "--", "echo", "one")
    as_yaml = warm.ok("describe", "again", "-o", "yaml")
    assert warm.ok("apply", "--dry-run", "-f", "-", stdin=as_yaml) == "again: unchanged\n"
    other = as_yaml.replace("value: one", "value: two")
    assert "these members differ: args" in warm("apply", "--dry-run", "-f", "-", stdin=other).err


def test_what_it_waits_for_is_named(warm: Caller) -> None:
    process = warm.start("run", "--name", "greedy", "--allow-pending", "--gpu", "1000", "--", "true")
    assert process.stderr is not None
    line = next(line for line in process.stderr if "GPU" in line)
    assert line.startswith("Can never start: it asks for 1000 GPUs")
    assert line.endswith(" · greedy is 1 of 1 in the queue\n")
    warm.ok("training", "delete", "greedy")
    process.communicate(timeout=180)
    assert process.returncode == exit_codes.RUN_FAILED


def test_output_comes_while_it_runs(warm: Caller) -> None:
    process = warm.start("run", "--name", "slow", "--", "sh", "-c", "echo begun; sleep 600")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=180)
    assert process.returncode == exit_codes.INTERRUPTED
    assert "slow continues without this command. Follow it with `fairlead logs -f slow`." in err
    assert json.loads(warm.ok("describe", "slow", "--json"))["phase"] == "Running"
    warm.ok("training", "delete", "slow")


class Terminal:
    """The command on a terminal of its own, typed at by the test."""

    def __init__(self, caller: Caller, *arguments: str, size: tuple[int, int] = (24, 80)) -> None:
        self.main, other = pty.openpty()
        termios.tcsetwinsize(self.main, size)
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=other,
            stdout=other,
            stderr=other,
            env=surroundings(caller.data_dir, TERM="xterm", COLUMNS="200"),
            cwd=caller.folder,
            start_new_session=True,
        )
        os.close(other)
        self.seen = ""

    def wait_for(self, text: str) -> None:
        until(lambda: self._read() and text in self.seen, f"{text!r} on the terminal")

    def _read(self) -> bool:
        # A closed other end is an error here: there is nothing more to come then.
        with contextlib.suppress(OSError):
            if select.select([self.main], [], [], 0.1)[0]:
                self.seen += os.read(self.main, 4096).decode()
        return True

    def type(self, text: str) -> None:
        os.write(self.main, text.encode())

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        code = self.process.wait(180)
        os.close(self.main)
        return code


@pytest.mark.parametrize(
    ("answer", "want_phase", "want_words"),
    [
        pytest.param("d\n", "Running", "Follow it with `fairlead logs -f", id="detach"),
        pytest.param("s\n", "Stopped", "is stopping", id="stop"),
    ],
)
def test_interrupting_asks_once(warm: Caller, answer: str, want_phase: str, want_words: str) -> None:
    name = f"asked-{want_phase.lower()}"
    terminal = Terminal(warm, "run", "--name", name, "--", "sh", "-c", "echo begun; sleep 600")
    terminal.wait_for("begun")
    terminal.interrupt()
    terminal.wait_for("(d)etach")
    terminal.type(answer)
    terminal.wait_for(want_words)
    assert terminal.end() == exit_codes.INTERRUPTED
    assert warm("wait", name, "--for", want_phase, "--timeout", "120s").code == 0
    warm.ok("training", "delete", name)


def test_interrupting_what_waits_says_so(warm: Caller) -> None:
    terminal = Terminal(warm, "run", "--name", "queued", "--allow-pending", "--gpu", "1000", "--", "true")
    terminal.wait_for("Can never start")
    terminal.interrupt()
    terminal.wait_for("queued waits to start. (d)etach and leave it in the queue")
    terminal.type("d\n")
    terminal.wait_for("queued stays in the queue.")
    assert terminal.end() == exit_codes.INTERRUPTED
    warm.ok("training", "delete", "queued")


def test_a_terminal_in_a_job(warm: Caller) -> None:
    """The size of the window is that of the job's terminal, detaching leaves it, and its exit code is that of `run`."""
    terminal = Terminal(warm, "run", "-it", "--name", "shell", "--", "sh")
    terminal.wait_for("Attached to pod shell-0-0. Ctrl-P Ctrl-Q detaches and leaves it running.")
    terminal.type("\x10\x11")
    terminal.wait_for("Detached. shell keeps running.")
    assert terminal.end() == exit_codes.OK
    again = Terminal(warm, "attach", "shell", size=(33, 77))
    again.wait_for("Attached to pod shell-0-0.")
    again.type("stty size; exit\r")
    again.wait_for("33 77")
    again.wait_for("The main process of shell has ended.")
    assert again.end() == exit_codes.OK
    ended = Terminal(warm, "run", "-it", "--", "sh")
    ended.type("exit 3\n")  # typed ahead: the job does not run yet
    ended.wait_for("exit code 3")
    assert ended.end() == 3


def test_what_takes_no_input_is_left_with_ctrl_c(warm: Caller) -> None:
    warm.ok("run", "--detach", "--name", "deaf", "--", "sleep", "600")
    warm.ok("wait", "deaf", "--for", "Running")
    terminal = Terminal(warm, "attach", "deaf")
    terminal.wait_for("Attached to the new output of pod deaf-0-0, which takes no input. Ctrl-C detaches.")
    terminal.interrupt()
    terminal.wait_for("Detached. deaf keeps running.")
    assert terminal.end() == exit_codes.OK
    warm.ok("training", "delete", "deaf")


def test_going_on_after_the_question(warm: Caller) -> None:
    release = warm.folder / "release"
    script = f"echo begun; while [ ! -e {release} ]; do sleep 0.05; done; echo ended; exit 4"
    terminal = Terminal(warm, "run", "--", "sh", "-c", script)
    terminal.wait_for("begun")
    terminal.interrupt()
    terminal.wait_for("(d)etach")
    terminal.type("\n")
    release.touch()
    terminal.wait_for("ended")
    assert terminal.end() == 4


def test_the_wait_is_one_changing_line_on_a_terminal(warm: Caller) -> None:
    terminal = Terminal(warm, "run", "--name", "narrated", "--allow-pending", "--gpu", "1000", "--", "true")
    terminal.wait_for("GPU")
    waiting = terminal.seen
    warm.ok("training", "delete", "narrated")
    assert terminal.end() == exit_codes.RUN_FAILED
    assert "\r\x1b[K" in waiting
    assert "\n" not in waiting


def test_a_server_that_comes_back_has_everything(fairlead: Caller) -> None:
    fairlead.ok("run", "--name", "kept", "--", "echo", "kept output")
    backup = fairlead.folder / "backup.tar.gz"
    assert fairlead.ok("backup", "backup.tar.gz") == f"{backup}\n"
    assert backup.stat().st_mode & 0o777 == 0o600
    assert fairlead("backup", "backup.tar.gz").code == exit_codes.USAGE
    assert "Stop it first with" in fairlead("restore", "backup.tar.gz").err
    fairlead.ok("server", "stop")
    elsewhere = Caller(fairlead.data_dir.parent / "elsewhere", fairlead.folder)
    try:
        told = fairlead("restore", "backup.tar.gz", "--data-dir", str(elsewhere.data_dir))
        assert f"Start the server with `fairlead server start --data-dir {elsewhere.data_dir}`." in told.err
        elsewhere.ok("server", "start")
        assert elsewhere.ok("list", "-o", "name") == "kept\n"
    finally:
        elsewhere("server", "stop")
        Server(elsewhere.data_dir).close()


def test_a_file_that_is_not_a_backup(fairlead: Caller) -> None:
    (fairlead.folder / "file").write_text("nothing")
    assert fairlead("restore", "file").code == exit_codes.FAILED
    assert not (fairlead.data_dir / "fairlead.db").exists()


def test_a_server_that_is_upgraded_meanwhile_is_found_again(fairlead: Caller) -> None:
    fairlead.ok("server", "start")
    release = fairlead.folder / "release"
    script = f"echo before; while [ ! -e {release} ]; do sleep 0.05; done; echo after; exit 6"
    process = fairlead.start("run", "--", "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "before\n"
    fairlead.ok("server", "stop")
    release.touch()
    fairlead.ok("server", "start")
    output, errors = process.communicate(timeout=180)
    assert output == "after\n", errors
    assert process.returncode == 6


def test_waiting_survives_a_restart_too(fairlead: Caller) -> None:
    fairlead.ok("server", "start")
    release = fairlead.folder / "release"
    script = f"while [ ! -e {release} ]; do sleep 0.05; done"
    fairlead.ok("run", "--detach", "--name", "waited", "--", "sh", "-c", script)
    waiting = fairlead.start("wait", "waited", "--for", "Completed", "--timeout", "120s")
    assert waiting.stderr is not None
    assert "waited: " in waiting.stderr.readline()
    fairlead.ok("server", "stop")
    release.touch()
    fairlead.ok("server", "start")
    waiting.communicate(timeout=180)
    assert waiting.returncode == exit_codes.OK


def test_a_process_that_is_not_a_server_is_left_alone(fairlead: Caller) -> None:
    """After a crash its number may belong to another program."""
    other = subprocess.Popen(["sleep", "600"])
    try:
        fairlead.data_dir.mkdir()
        told = {"url": "http://127.0.0.1:9", "pid": other.pid, "log": "", "version": "", "startedAt": ""}
        (fairlead.data_dir / "server.json").write_text(json.dumps(told))
        assert fairlead("server", "status").code == exit_codes.UNREACHABLE
        assert fairlead("server", "stop").code == exit_codes.OK
        assert other.poll() is None
        assert fairlead.ok("run", "--", "echo", "works") == "works\n"
    finally:
        other.kill()
        other.wait()
