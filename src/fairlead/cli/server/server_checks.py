"""What `doctor` finds out about the server of the data folder: whether it answers, its version, its ports."""

import socket

from fairlead import __version__
from fairlead.cli.command import Invocation
from fairlead.cli.session.background import is_healthy
from fairlead.cli.session.settings import data_folder, next_command
from fairlead.client.access.local import LocalServer, load_flags, load_local
from fairlead.model.finding import Finding

#: As in `fairlead.settings`: the flag of each listener, and its port without it.
_PORTS = (("--port", 7420), ("--proxy-port", 7421))


def check_server(invocation: Invocation) -> list[Finding]:
    folder = data_folder(invocation)
    server = load_local(folder)
    restart = next_command(invocation, "server restart")
    if server is None:
        start = next_command(invocation, "server start")
        found = [Finding("Server", "note", "does not run", f"Start it: {start}"), Finding("Version", "ok", __version__)]
        return [*found, _check_ports(load_flags(folder))]
    return [_check_answer(server), judge_version(server.version, __version__, restart)]


def judge_version(server: str, command: str, restart: str) -> Finding:
    if server == command:
        return Finding("Version", "ok", f"{command}, of the server and of this command")
    advice = f"Restart the server; workloads keep running: {restart}"
    return Finding("Version", "note", f"the server is {server}, but this command is {command}", advice)


def _check_answer(server: LocalServer) -> Finding:
    if is_healthy(server.url):
        return Finding("Server", "ok", f"answers at {server.url}")
    advice = f"Read its log: {server.log}"
    return Finding("Server", "missing", f"process {server.pid} does not answer at {server.url}", advice)


def _check_ports(flags: list[str]) -> Finding:
    """Whether the ports that the server would have are free."""
    taken = []
    for name, default in _PORTS:
        given = _read_port(flags, name)
        if not _is_free(default if given is None else given):
            taken.append((name, default if given is None else given, given is not None))
    if not taken:
        return Finding("Ports", "ok", "the ports of the server are free")
    name, port, is_fixed = taken[0]
    advice = f"End the program on it (ss -ltnp 'sport = {port}'), or choose another: fairlead server start -- {name} N"
    if is_fixed:
        return Finding("Ports", "missing", f"port {port} ({name}) is in use", advice)
    return Finding("Ports", "note", f"port {port} is in use, so another free one would be used", advice)


def _read_port(flags: list[str], name: str) -> int | None:
    """From flags as they were given to `serve`: `--port N` or `--port=N`."""
    words = [word for flag in flags for word in flag.split("=", 1)]
    given = words[words.index(name) + 1 :] if name in words else []
    return int(given[0]) if given and given[0].isdigit() else None


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
