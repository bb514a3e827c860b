"""Clones a repository into a volume with the machine's own git. Called by `fetching.py` in the pod's process.

Git reads no configuration but ours, runs no hook, speaks only the allowed protocols and asks nothing on a terminal.
Credentials lie in files of the pod's own shared memory while git runs, and are deleted before the command starts.
"""

import errno
import os

from fairlead.engines.local.launch_order import GitFetch
from fairlead.engines.local.linux import programs

#: The pod's own shared memory: no disk, nobody else's.
_ROOM = "/dev/shm"  # noqa: S108 - the place itself
_ASKED = """#!/bin/sh
case "$1" in
    Username*) cat {room}/user ;;
    *) cat {room}/password ;;
esac
"""


def clone(fetch: GitFetch) -> None:
    """Put the working copy at its place; raises OSError with git's own message."""
    folder = f"{_ROOM}/.fetch-{os.getpid()}"
    os.mkdir(folder, 0o700)
    try:
        environment = _environment(fetch, folder)
        where = ["--branch=" + fetch.branch] if fetch.branch else []
        wait = ["--no-checkout"] if fetch.revision else []
        _git(["clone", "--quiet", *where, *wait, "--", fetch.repository, fetch.at], fetch, environment)
        if fetch.revision:
            _git(["-C", fetch.at, "checkout", "--quiet", "--detach", fetch.revision, "--"], fetch, environment)
    finally:
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def _environment(fetch: GitFetch, folder: str) -> dict[str, str]:
    environment = {
        "PATH": programs.PATH,
        "HOME": folder,
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": fetch.protocols,
        "GIT_HTTP_LOW_SPEED_LIMIT": "1",
        "GIT_HTTP_LOW_SPEED_TIME": str(fetch.silence),
    }
    if fetch.password or fetch.user:
        _write(f"{folder}/user", fetch.user, 0o600)
        _write(f"{folder}/password", fetch.password, 0o600)
        _write(f"{folder}/askpass", _ASKED.format(room=folder), 0o700)
        environment["GIT_ASKPASS"] = f"{folder}/askpass"
    if fetch.key:
        _write(f"{folder}/key", fetch.key.rstrip("\n") + "\n", 0o600)
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": fetch.silence,
        "ServerAliveInterval": fetch.silence,
        "ServerAliveCountMax": 1,
        "StrictHostKeyChecking": "accept-new",
        "UserKnownHostsFile": f"{folder}/known_hosts",
        "IdentitiesOnly": "yes",
        "IdentityFile": f"{folder}/key" if fetch.key else "none",
    }
    flags = " ".join(f"-o {name}={value}" for name, value in options.items())
    environment["GIT_SSH_COMMAND"] = f"ssh -F {os.devnull} {flags}"
    return environment


def _write(path: str, text: str, mode: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(file, "w") as opened:
        opened.write(text)


def _git(arguments: list[str], fetch: GitFetch, environment: dict[str, str]) -> None:
    options = ["-c", f"core.hooksPath={os.devnull}", "-c", "safe.directory=*", "-c", "core.fsmonitor=false"]
    ended = programs.run(["git", *options, *arguments], environment, seconds=fetch.seconds)
    if ended.out_of_time:
        raise OSError(errno.ETIMEDOUT, f"git did not finish within {fetch.seconds} s. {_clean(ended.output)}")
    if ended.code != 0:
        raise OSError(errno.EIO, f"git: {_clean(ended.output) or f'exit code {ended.code}'}")


def _clean(output: str) -> str:
    """Without credentials that were written into the address."""
    first, *rest = output.split("://")
    return "://".join([first, *(_without_user(part) for part in rest)])


def _without_user(address: str) -> str:
    host, slash, path = address.partition("/")
    return host.rpartition("@")[2] + slash + path
