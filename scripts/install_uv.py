"""Puts the `uv` that uv.lock names below a folder, with nothing but Python's standard library. Called by setup.sh.

pip is asked first, because it knows the machine's index, proxy and certificates. Debian's bare python3 comes without
pip and venv: then the wheel is fetched from the address in the lock file. Either way its hash must be the locked one.
"""

import hashlib
import io
import os
import platform
import ssl
import stat
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
from pathlib import Path


def load_wheels(lock: Path) -> tuple[str, list[dict[str, str]]]:
    for package in tomllib.loads(lock.read_text())["package"]:
        if package["name"] == "uv":
            return package["version"], package["wheels"]
    raise SystemExit("uv.lock does not name uv: run `uv lock` with the dependency group `tools` in pyproject.toml")


def fits(name: str) -> bool:
    """Whether a wheel of that name runs here: the processor and, on Linux, the C library."""
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "darwin":
        return "macosx" in name and (machine in name or (machine == "aarch64" and "arm64" in name))
    library = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    return library in name and name.endswith(f"{machine}.whl")


def is_locked(wheel: bytes, wheels: list[dict[str, str]]) -> bool:
    return "sha256:" + hashlib.sha256(wheel).hexdigest() in {entry["hash"] for entry in wheels}


def fetch_with_pip(version: str) -> bytes | None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        got = subprocess.run([*command, "--dest", folder, f"uv=={version}"], capture_output=True, text=True)
        wheels = list(Path(folder).glob("uv-*.whl"))
        if got.returncode or not wheels:
            return None
        return wheels[0].read_bytes()


def fetch_directly(wheels: list[dict[str, str]]) -> bytes:
    fitting = [wheel["url"] for wheel in wheels if fits(wheel["url"].rsplit("/", 1)[-1])]
    if not fitting:
        raise SystemExit(
            f"no uv in uv.lock for {sys.platform} on {platform.machine()}: install pip for {sys.executable}"
        )
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    try:
        with urllib.request.urlopen(fitting[0], context=ssl.create_default_context(cafile=certificates)) as answer:
            wheel: bytes = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise SystemExit(
            f"could not fetch {fitting[0]}: {error}\n"
            f"If this machine reaches packages through a mirror, give {sys.executable} pip and point pip to it\n"
            "(Debian: apt-get install python3-pip), then call make again."
        ) from None
    return wheel


def main(lock: Path, target: Path) -> None:
    version, wheels = load_wheels(lock)
    wheel = fetch_with_pip(version) or fetch_directly(wheels)
    if not is_locked(wheel, wheels):
        raise SystemExit(
            f"the uv {version} that was fetched is not the one in uv.lock: its hash differs; nothing installed"
        )
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith("/scripts/uv")]
        content = archive.read(member)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and renamed: a call that is cut off leaves no half of a program.
    beside = target.with_suffix(f".{os.getpid()}")
    beside.write_bytes(content)
    beside.chmod(beside.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    beside.replace(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
