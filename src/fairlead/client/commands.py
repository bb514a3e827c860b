"""A command on this machine as a workload: its name, its words, its creation request. `run` uses it, here and in the
command line."""

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence

from fairlead.client.json_object import Json

#: The image that stands for this machine: nothing is pulled, the command sees the machine's own files.
HOST_IMAGE = "fairlead.local/host"
#: They describe the calling shell itself, not the command.
_OF_SHELL = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})
_LONGEST_NAME = 40
_INTERPRETERS = re.compile(r"^(python|pypy|node|ruby|perl|bash|sh|zsh|julia|R)[0-9.]*$")
#: The server would expand these; `run` passes on what was typed.
_REFERENCE = re.compile(r"\$(?=[({])")


def variables_of_caller(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a command takes along from its caller: all but those of the calling shell itself."""
    variables = {name: value for name, value in environ.items() if name not in _OF_SHELL and _is_text(value)}
    return variables | {"PATH": _path_of_shell(environ)} if "PATH" in variables else variables


def _path_of_shell(environ: Mapping[str, str]) -> str:
    """The search path of the calling shell: `uvx` puts the environment that it made for Fairlead in front of it."""
    first, _, rest = environ["PATH"].partition(os.pathsep)
    is_added = "UV" in environ and first == os.path.join(sys.prefix, "bin") and environ.get("VIRTUAL_ENV") != sys.prefix
    return rest if is_added else environ["PATH"]


def _is_text(value: str) -> bool:
    """Bytes that are not text cannot be sent."""
    return value.isprintable() or not any("\udc80" <= letter <= "\udcff" for letter in value)


def host_spec(folder: str) -> Json:
    """The spec of a command that runs once on this machine, in that folder."""
    return {
        "image": HOST_IMAGE,
        "workingDir": folder,
        # The exit code is the result, so a failed command is not retried by default.
        "backoffLimit": 0,
        "restartPolicy": "Never",
    }


def set_command(spec: Json, command: Sequence[str]) -> None:
    spec["command"] = quote_arguments(command[:1])
    if command[1:]:
        spec["args"] = quote_arguments(command[1:])


def set_gpus(spec: Json, wanted: float) -> None:
    """Ask for whole devices, or for a fraction of one; raises ValueError for anything else."""
    if wanted < 0:
        raise ValueError(f"gpu must be 0 or more, not {wanted:g}.")
    compute = spec.setdefault("compute", {})
    if wanted and wanted < 1:
        compute |= {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": wanted}
    elif wanted == int(wanted):
        compute["gpuDevicesRequest"] = int(wanted)
    else:
        raise ValueError(f"gpu must be a whole number of devices or a fraction below 1, not {wanted:g}.")


def quote_arguments(arguments: Sequence[str]) -> str:
    """Join arguments so that the server splits them in the same way; `$(` and `${` are left for the command's shell."""
    return shlex.join(_REFERENCE.sub("$$", word) for word in arguments)


def name_for(command: Sequence[str]) -> str:
    """A name for a command: that of an interpreter's script, else that of the program."""
    program = os.path.basename(command[0])
    if _INTERPRETERS.match(program) and len(command) > 1 and not command[1].startswith("-"):
        program = os.path.splitext(os.path.basename(command[1]))[0]
    name = re.sub(r"[^a-z0-9]+", "-", program.lower()).strip("-")[:_LONGEST_NAME].strip("-")
    if not name:
        return "run"
    return name if name[0].isalpha() else f"run-{name}"
