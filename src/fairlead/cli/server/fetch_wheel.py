"""Finds the wheel that `upgrade` is to install: a file, an address, or a version in a package index."""

import hashlib
import re
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.cli.server.installation import PACKAGE
from fairlead.client import ClientError

_LINK = re.compile(r"""href\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
_SECONDS = 60.0


def fetch_wheel(invocation: Invocation, folder: Path) -> Path:
    """The wheel as a file; what comes by network is put into the folder."""
    [target] = invocation.names
    index = invocation.get("index")
    if index:
        return _download(_find_in_index(f"{index.rstrip('/')}/{PACKAGE}/", target), folder)
    if urllib.parse.urlsplit(target).scheme in ("http", "https"):
        return _download(target, folder)
    path = Path(invocation.environment.folder, target).absolute()
    if not path.is_file():
        hint = "" if target.endswith(".whl") else " A version is taken from a package index: --index URL."
        raise UsageError(f"There is no file {path}.{hint}")
    return path


def _find_in_index(page: str, version: str) -> str:
    """The address of the version's wheel on a page of the simple repository API (PEP 503), with its checksum."""
    name = f"{PACKAGE.replace('-', '_')}-{version}-"
    for link in _LINK.findall(_read(page).decode("utf-8", "replace")):
        address: str = urllib.parse.urljoin(page, link.replace("&amp;", "&"))
        file = urllib.parse.urlsplit(address).path.rpartition("/")[2]
        if file.startswith(name) and file.endswith(".whl"):
            return address
    raise ClientError(f"{page} has no wheel of version {version}.")


def _download(address: str, folder: Path) -> Path:
    """The checksum in the address must be that of the file; without one, the address must be encrypted."""
    parts = urllib.parse.urlsplit(address)
    kind, _, wanted = parts.fragment.partition("=")
    if kind != "sha256" and parts.scheme != "https":
        raise ClientError(f"{address} has neither https:// nor a checksum (#sha256=…), so the file cannot be trusted.")
    content = _read(address)
    if kind == "sha256" and hashlib.sha256(content).hexdigest() != wanted:
        raise ClientError(f"The file at {address} does not match its checksum.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / urllib.parse.unquote(parts.path.rpartition("/")[2])
    target.write_bytes(content)
    return target


def _read(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise ClientError(f"{address} cannot be read: {error}.") from error
