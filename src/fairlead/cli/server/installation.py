"""How this Fairlead is installed, how another version replaces it, and how the current one is kept as a wheel.

Called by `upgrade`. It knows environments of uv (`uv tool install`), of pipx, and plain virtual environments.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from fairlead.client import ClientError

PACKAGE = "fairlead-workloads"
_PREFIX = PACKAGE.replace("-", "_")
_UV, _PIPX, _VENV = "uv tool", "pipx", "virtual environment"
#: Written by whoever installed the package, and no part of it.
_MARKS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


class InstalledTool(NamedTuple):
    kind: str
    #: The environment.
    folder: Path
    #: Where uv put the command; for the others it is in the environment.
    commands: Path


def find_installation(folder: Path, *, is_checkout: bool) -> InstalledTool:
    """What kind of environment the folder is; raises ClientError if its packages are not ours to change."""
    if is_checkout:
        raise ClientError(
            "This command runs from a checkout. Upgrade it with `git pull`, then restart the server: "
            "`fairlead server restart`."
        )
    receipt = folder / "uv-receipt.toml"
    if receipt.exists():
        [entry, *_] = tomllib.loads(receipt.read_text())["tool"]["entrypoints"]
        return InstalledTool(_UV, folder, Path(entry["install-path"]).parent)
    if (folder / "pipx_metadata.json").exists():
        return InstalledTool(_PIPX, folder, folder / "bin")
    if {"archive-v0", "environments-v2"}.intersection(folder.parts):
        raise ClientError("uvx runs the version that it is given. Give it the new wheel, then restart the server.")
    if not (folder / "pyvenv.cfg").exists():
        raise ClientError(
            f"Fairlead is installed in the system's Python, {folder}. Upgrade it as it was installed, "
            "then restart the server: `fairlead server restart`."
        )
    return InstalledTool(_VENV, folder, folder / "bin")


def is_checkout() -> bool:
    """Whether this command runs from a checkout."""
    try:
        return '"editable":true' in (_installed().read_text("direct_url.json") or "").replace(" ", "")
    except PackageNotFoundError:
        return True


def render_install(installation: InstalledTool, wheel: Path) -> tuple[list[str], dict[str, str]]:
    """The command that puts the wheel into the environment, and the variables that it needs."""
    if installation.kind == _UV:
        places = {"UV_TOOL_DIR": str(installation.folder.parent), "UV_TOOL_BIN_DIR": str(installation.commands)}
        return ["uv", "tool", "install", "--quiet", "--force", "--reinstall-package", PACKAGE, str(wheel)], places
    if installation.kind == _PIPX and shutil.which("pipx"):
        places = {"PIPX_HOME": str(installation.folder.parents[1])}
        return ["pipx", "install", "--quiet", "--force", str(wheel)], places
    return [str(installation.folder / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)], {}


def install(installation: InstalledTool, wheel: Path, environ: Mapping[str, str]) -> None:
    """Raises ClientError with the installer's own words if it fails."""
    command, places = render_install(installation, wheel)
    try:
        done = subprocess.run(command, env={**environ, **places}, capture_output=True, text=True)
    except FileNotFoundError:
        raise ClientError(f"`{command[0]}` is not on the path, but it manages {installation.folder}.") from None
    if done.returncode:
        raise ClientError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")


def version_of_wheel(wheel: Path) -> str:
    """From its name; raises ClientError if it is not a wheel of Fairlead."""
    parts = wheel.name.split("-")
    if not wheel.name.endswith(".whl") or len(parts) < 5 or parts[0] != _PREFIX:
        raise ClientError(f"{wheel} is not a wheel of {PACKAGE}: its name does not begin with {_PREFIX}-.")
    return parts[1]


def keep_present_version(folder: Path) -> Path:
    """Pack the version that runs into a wheel in the folder, so that it can come back without a network."""
    package = _installed()
    info = f"{_PREFIX}-{package.version}.dist-info"
    target = folder / f"{_PREFIX}-{package.version}-py3-none-any.whl"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = {}
    for path in package.files or ():
        name = path.as_posix()
        if name.endswith(".pyc") or "/bin/" in name or name in {f"{info}/{mark}" for mark in _MARKS}:
            continue
        if name.startswith("../"):
            name = f"{_PREFIX}-{package.version}.data/data/{name.lstrip('./')}"
        files[name] = path.read_binary()
    write_wheel(target, files, info)
    return target


def write_wheel(target: Path, files: Mapping[str, bytes], info: str) -> None:
    """A wheel with these files, and the list of them in its folder `info`."""
    lines = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
        archive.writestr(f"{info}/RECORD", "".join([*lines, f"{info}/RECORD,,\n"]))
    os.chmod(target, 0o600)


def _installed() -> Distribution:
    return distribution(PACKAGE)
