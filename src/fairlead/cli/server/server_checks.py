"""What `doctor` finds out about the server of the data folder: whether it answers, its version, ports, backups."""

import shlex
import socket
import time
from pathlib import Path

from fairlead import __version__
from fairlead.cli.command import Invocation
from fairlead.cli.flags import read_duration
from fairlead.cli.session.background import is_healthy
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import data_folder, next_command, surroundings_of
from fairlead.cli.terminal.times import span
from fairlead.client.access.discovery import sign_in_to_machine
from fairlead.client.access.local import LocalServer, is_in_background, load_flags, load_local, read_flag
from fairlead.client.access.machine import MachineServer
from fairlead.model.finding import Finding
from fairlead.store.last_backup import load_last_backup

#: Seconds after which a backup that was made by hand is old.
_OLD_BACKUP = 7 * 86_400.0
_SCHEDULE = ("--backup-every", "6h", "--keep", "14")
#: As in `fairlead.serve_flags`: the flag of each listener, and its port without it.
_PORTS = (("--port", 7420), ("--proxy-port", 7421))


def check_server(invocation: Invocation) -> list[Finding]:
    folder = data_folder(invocation)
    server = load_local(folder)
    restart = next_command(invocation, "server restart")
    url = ServerSession(invocation).configured_url
    if server is None and url:
        # Its ports and backups are the matter of its own machine.
        return [_check_configured(url), Finding("Version", "ok", __version__)]
    machine = sign_in_to_machine(surroundings_of(invocation)) if server is None else None
    if machine is not None:
        return [_check_machine(machine), Finding("Version", "ok", __version__)]
    if server is None:
        start = next_command(invocation, "server start")
        findings = [
            Finding("Server", "note", "not running", f"Start it: {start}"),
            Finding("Version", "ok", __version__),
        ]
        return [*findings, _check_ports(load_flags(folder)), _check_backup(invocation, folder)]
    if not is_in_background(server.pid):
        restart = "where `fairlead serve` was started"
    version = judge_version(server.version, __version__, restart)
    return [_check_answer(server), version, _check_backup(invocation, folder)]


def judge_version(server: str, command: str, restart: str) -> Finding:
    if server == command:
        return Finding("Version", "ok", f"{command}, of the server and of this command")
    advice = f"Restart the server; workloads keep running: {restart}"
    return Finding("Version", "note", f"the server is {server}, but this command is {command}", advice)


def judge_backup(age: float | None, every: float, advice: str) -> Finding:
    """From the age of the newest backup (None: there is none) and the time between scheduled ones (0: none).

    The advice is for a server without a recent or scheduled backup.
    """
    what = "Backup"
    state = "there is none" if age is None else f"the newest one is {span(age)} old and verified by a test restore"
    if every:
        if age is not None and age < 2 * every:
            return Finding(what, "ok", f"{state}; scheduled every {span(every)}")
        late = "Check that the server runs, and read its log about scheduled backups"
        return Finding(what, "missing", f"{state}, but one is due every {span(every)}", late)
    if age is not None and age < _OLD_BACKUP:
        return Finding(what, "ok", state)
    return Finding(what, "note", state, advice)


def _check_backup(invocation: Invocation, folder: str) -> Finding:
    last = load_last_backup(Path(folder))
    flags = load_flags(folder)
    every = read_duration(read_flag(flags, "--backup-every") or "0")
    regularly = f"{restart_with_flags(invocation)} {' '.join(_SCHEDULE)}"
    advice = f"Back up now ({next_command(invocation, 'backup FILE')}), or regularly: {regularly}"
    return judge_backup(time.time() - last.time if last else None, every, advice)


def restart_with_flags(invocation: Invocation) -> str:
    """The command that restarts the server with more flags, which follow it.

    Flags after -- replace the recorded ones, so it repeats these. A server that was started with `fairlead serve` is
    restarted where it was started.
    """
    folder = data_folder(invocation)
    recorded = shlex.join(load_flags(folder))
    server = load_local(folder)
    if server is not None and not is_in_background(server.pid):
        return f"stop the server, then start it with {next_command(invocation, 'serve')} {recorded}".rstrip()
    return f"{next_command(invocation, 'server restart')} -- {recorded}".rstrip()


def _check_answer(server: LocalServer) -> Finding:
    if is_healthy(server.url, certificate=server.certificate):
        return Finding("Server", "ok", f"answers at {server.url}")
    advice = f"Read its log: {server.log}"
    return Finding("Server", "missing", f"process {server.pid} does not answer at {server.url}", advice)


def _check_configured(url: str) -> Finding:
    if is_healthy(url):
        return Finding("Server", "ok", f"answers at {url}, as configured")
    return Finding("Server", "missing", f"does not answer at {url}, as configured", "Check the address and the server")


def _check_machine(machine: MachineServer) -> Finding:
    """The shared server of this machine. What pods need of the machine is the matter of its operator."""
    if machine.url:
        return Finding("Server", "ok", f"the shared server of this machine answers at {machine.url}")
    advice = "Ask the operator of this machine to create a user for your account (fairlead user create)"
    return Finding(
        "Server", "missing", f"the shared server of this machine did not sign you in: {machine.error}", advice
    )


def _check_ports(flags: list[str]) -> Finding:
    """Whether the ports that the server would have are free."""
    ports_in_use = []
    for name, default in _PORTS:
        given = read_flag(flags, name) or ""
        port = int(given) if given.isdigit() else default
        if not _is_free(port):
            ports_in_use.append((name, port, bool(given)))
    if not ports_in_use:
        return Finding("Ports", "ok", "the ports of the server are free")
    name, port, is_fixed = ports_in_use[0]
    advice = f"Stop the program on it (ss -ltnp 'sport = {port}'), or choose a port: fairlead server start -- {name} N"
    if is_fixed:
        return Finding("Ports", "missing", f"port {port} ({name}) is in use", advice)
    return Finding("Ports", "note", f"port {port} is in use, so another free one would be used", advice)


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
