"""Wheels for tests: built from what a clone has, and made over into another version."""

import shutil
import zipfile
from pathlib import Path

from fairlead import __version__
from fairlead.cli.server.installation import write_wheel
from scripts import release

#: The time that builds are told, in seconds since 1970.
BUILD_TIME = "1700000000"


def build(folder: Path) -> Path:
    """The wheel and the source distribution, in a folder in which nothing of the checkout's environment can help.

    Without the page, which needs Node; `make test-web` sees that a wheel has it.
    """
    release.copy_clone(folder / "clone")
    release.build(folder / "clone", folder / "dist", BUILD_TIME, has_page=False)
    shutil.rmtree(folder / "clone")
    return folder / "dist"


def as_version(wheel: Path, version: str, folder: Path, **added: str) -> Path:
    """The same wheel under another version, with text added to modules (migrations="…" for store/migrations.py)."""
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if name in ("fairlead/__init__.py", f"fairlead_workloads-{__version__}.dist-info/METADATA"):
                content = content.replace(__version__.encode(), version.encode())
            if name.startswith("fairlead/store/") and Path(name).stem in added:
                content += added[Path(name).stem].encode()
            if not name.endswith("/RECORD"):
                files[name.replace(f"-{__version__}.", f"-{version}.")] = content
    target = folder / f"fairlead_workloads-{version}-py3-none-any.whl"
    write_wheel(target, files, f"fairlead_workloads-{version}.dist-info")
    return target
