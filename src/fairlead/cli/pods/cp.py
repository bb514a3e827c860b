"""`cp`: copies files and folders to and from a pod, as a tar archive through a command in the pod."""

import contextlib
import io
import os
import select
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import UsageError
from fairlead.cli.pods.exec import POD_FLAGS, find_with_pod, open_command
from fairlead.cli.session.session import ServerSession
from fairlead.client import ClientError
from fairlead.client.duplex import END, ERROR, EXIT, INPUT, OUTPUT, Duplex
from fairlead.client.json_object import Json

_PIECE = 64 * 1024
_MIB = 1 << 20
#: Exit codes of the commands in the pod, and what each says about the path.
_MISSING, _NO_FOLDER, _NO_TAR = 66, 73, 127
#: Into a folder that exists; otherwise under the target's own name, by way of a folder beside it.
_UNPACK = (
    'if [ -d "$1" ]; then exec tar -C "$1" -xf -; fi; d=$(dirname -- "$1"); '
    f'[ -d "$d" ] || exit {_NO_FOLDER}; t=$(mktemp -d "$d/.cp.XXXXXX") && '
    'tar -C "$t" -xf - && mv -- "$t/$2" "$1" && rmdir "$t"'
)
_PACK = (
    f'[ -e "$1" ] || [ -L "$1" ] || exit {_MISSING}; '
    'cd -- "$(dirname -- "$1")" && exec tar -cf - -- "$(basename -- "$1")"'
)


class Place(NamedTuple):
    workload: str
    path: str


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Copy files and folders to or from a pod",
            _copy,
            POD_FLAGS,
            "SOURCE TARGET",
            2,
            2,
            details="One of the two is NAME:PATH, a path in a pod of the workload:\n"
            "  fairlead cp train:/results/model.pt .\n"
            "  fairlead cp data/ train:/workspace/data\n"
            "The pod needs `tar`. A target that is a folder gets the copy inside it.",
            completes="workload",
        ),
    )


def _copy(invocation: Invocation) -> int:
    source, target = (_read_place(word) for word in invocation.names)
    if (source is None) == (target is None):
        raise UsageError("One of SOURCE and TARGET must be NAME:PATH, the other a path on this machine.")
    session = ServerSession(invocation)
    try:
        if source is not None:
            _download(session, source, os.path.join(invocation.environment.folder, invocation.names[1]))
        elif target is not None:
            _upload(session, os.path.join(invocation.environment.folder, invocation.names[0]), target)
    finally:
        session.close()
    return OK


def _read_place(word: str) -> Place | None:
    """`NAME:PATH`; a word with a slash before the colon is a path on this machine."""
    name, colon, path = word.partition(":")
    return Place(name, path or ".") if colon and name and "/" not in name else None


def _download(session: ServerSession, source: Place, target: str) -> None:
    workload = find_with_pod(session, source.workload)
    with tempfile.TemporaryFile() as archive:
        duplex = _start(session, workload, ["/bin/sh", "-c", _PACK, "sh", source.path], stdin=False)
        try:
            duplex.send_frame(END)
            _finish(session, duplex, archive, source)
        finally:
            duplex.close()
        archive.seek(0)
        left_out = unpack(archive, target)
    session.console.say(f"Copied {source.workload}:{source.path} to {os.path.normpath(target)}.")
    if left_out:
        session.console.complain(f"{left_out} links or special files were left out.")


def unpack(archive: IO[bytes], target: str) -> int:
    """Extract under the target's name, or into the target if it is a folder; returns how many members were left out.

    Only files and folders are extracted, and nothing outside of the target: a pod's archive is not to be trusted.
    """
    left_out = 0
    try:
        with tarfile.open(fileobj=archive) as tar:
            top = ""
            for member in tar:
                first, *rest = member.name.split("/")
                top = top or first
                if first != top or ".." in (first, *rest) or not (member.isfile() or member.isdir()):
                    left_out += 1
                    continue
                begin = os.path.join(target, top) if os.path.isdir(target) and member.name == top else target
                target = begin
                _write(tar, member, os.path.join(target, *rest))
            if not top:
                raise ClientError("The pod sent no file.")
    except (tarfile.TarError, OSError) as error:
        raise ClientError(f"The copy to {target} failed: {error}.") from error
    return left_out


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    if member.isdir():
        os.makedirs(path, exist_ok=True)
        return
    content = tar.extractfile(member)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        while content is not None and (piece := content.read(_PIECE)):
            file.write(piece)
    os.chmod(path, member.mode & 0o777)


def _upload(session: ServerSession, source: str, target: Place) -> None:
    name = os.path.basename(os.path.normpath(source))
    if not os.path.exists(source):
        raise UsageError(f"{source} does not exist.")
    workload = find_with_pod(session, target.workload)
    # A target that does not exist gets its own name.
    command = ["/bin/sh", "-c", _UNPACK, "sh", target.path.rstrip("/") or "/", name]
    duplex = _start(session, workload, command, stdin=True)
    try:
        # A command that has failed takes no more input; its answer says why.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            _send(session, duplex, _pack(source, name))
        _finish(session, duplex, io.BytesIO(), target)
    except OSError as error:
        raise ClientError(f"The copy to {target.workload} was cut off: {error}.") from error
    finally:
        duplex.close()
    session.console.say(f"Copied {source} to {target.workload}:{target.path}.")


def _send(session: ServerSession, duplex: Duplex, pieces: Iterable[bytes]) -> None:
    sent = 0
    for piece in pieces:
        duplex.send_frame(INPUT, piece)
        sent += len(piece)
        _show_progress(session, sent)
        if select.select([duplex], [], [], 0)[0]:
            break
    duplex.send_frame(END)


def _pack(source: str, name: str) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(source, name)
        archive.seek(0)
        while piece := archive.read(_PIECE):
            yield piece


def _start(session: ServerSession, workload: Json, command: list[str], *, stdin: bool) -> Duplex:
    return open_command(session, workload, command, stdin=stdin, with_terminal=False)


def _finish(session: ServerSession, duplex: Duplex, output: IO[bytes], place: Place) -> None:
    """Take the command's output until it ends; raises ClientError if it failed."""
    pending, errors, received = bytearray(), b"", 0
    while True:
        if not duplex.has_pending:
            select.select([duplex], [], [])
        for channel, data in duplex.frames(pending):
            if channel == OUTPUT:
                output.write(data)
                received += len(data)
                _show_progress(session, received)
            elif channel == ERROR:
                errors += data
            elif channel == EXIT:
                session.console.clear()
                if data != b"0":
                    raise ClientError(explain_failure(data, errors.decode("utf-8", "replace").strip(), place))
                return
        if duplex.is_over:
            raise ClientError("The connection to the pod was lost before the copy ended.")


def explain_failure(code: bytes, errors: str, place: Place) -> str:
    """What the end of the command in the pod means for the copy."""
    path = f"{place.workload}:{place.path}"
    known = {
        _MISSING: f"There is no file or folder {path}.",
        _NO_FOLDER: f"There is no folder for {path}; create {os.path.dirname(place.path.rstrip('/'))} first.",
        _NO_TAR: f"{place.workload} has no program `tar`, which copying needs.",
    }
    if code.isdigit() and int(code) in known and (int(code) != _NO_TAR or "tar" in errors):
        return known[int(code)]
    return f"The copy of {path} failed in the pod{f': {errors}' if errors else '.'}"


def _show_progress(session: ServerSession, number: int) -> None:
    if session.console.is_live and number % (4 * _MIB) < _PIECE:
        session.console.live(f"Copying … {number / _MIB:.0f} MiB")
