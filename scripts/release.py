"""`make release`: everything that a release consists of, in dist/, checked in an environment without the checkout.

The wheel and the source distribution are the same bytes wherever they are built from the same commit: the lock file
pins what builds them, and the commit's time is theirs.
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from deploy.image import make_image
from fairlead import __version__
from fairlead.client.access.machine import VARIABLE
from scripts.generate_chart import CHART_VERSION

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
UV = ROOT / ".tools" / "uv"
UNIT = ROOT / "deploy" / "systemd" / "fairlead.service"
CHART = ROOT / "deploy" / "helm"
WHEEL = f"fairlead_workloads-{__version__}-py3-none-any.whl"
SOURCE = f"fairlead_workloads-{__version__}.tar.gz"
IMAGE = f"fairlead-{__version__}.oci.tar"
NAME = f"docker.io/library/fairlead:{__version__}"
#: In no order of importance, the marks of a shell in which a checkout is worked on.
ACTIVATED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "FAIRLEAD_DATA_DIR")


class ReleaseError(Exception):
    """An artefact cannot be made, or does not do what it should."""


def main() -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    build(ROOT, DIST, commit_time())
    make_image(DIST / IMAGE, NAME)
    manifests = run(sys.executable, "-m", "fairlead", "kubernetes", "manifests", "--offline", cwd=ROOT)
    (DIST / f"fairlead-{__version__}.kubernetes.yaml").write_text(manifests)
    shutil.copy(UNIT, DIST)
    pack_chart(DIST)
    made = sorted(path for path in DIST.iterdir() if not path.name.startswith("."))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    with tempfile.TemporaryDirectory() as scratch:
        check(Path(scratch))
    print("".join(sums), end="")
    return 0


def build(source: Path, target: Path, epoch: str, *, has_page: bool = True) -> None:
    """The source distribution, and the wheel made from it, with the versions of the lock file."""
    target.mkdir(parents=True, exist_ok=True)
    constraints = target / ".constraints.txt"
    run(UV, "export", "--frozen", "--quiet", "--no-hashes", "--all-groups", "--no-emit-project", "-o", constraints)
    try:
        words = ("build", "--quiet", "--build-constraint", constraints, "--out-dir", target, source)
        run(UV, *words, cwd=source, SOURCE_DATE_EPOCH=epoch, FAIRLEAD_PAGE="yes" if has_page else "no")
    finally:
        constraints.unlink()
        (target / ".gitignore").unlink(missing_ok=True)


def pack_chart(folder: Path) -> Path:
    """The Helm chart as `helm package` names and packs it; the same files give the same bytes."""
    target = folder / f"fairlead-{CHART_VERSION}.tgz"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path in sorted(one for one in CHART.rglob("*") if one.is_file()):
            entry = tarfile.TarInfo(f"fairlead/{path.relative_to(CHART)}")
            entry.size, entry.mode = path.stat().st_size, 0o644
            with open(path, "rb") as content:
                archive.addfile(entry, content)
    target.write_bytes(gzip.compress(plain.getvalue(), mtime=0))
    return target


def commit_time() -> str:
    return run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def copy_clone(target: Path) -> None:
    """What a clone has, in another folder and readable by its owner only: neither may show in what is built."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            copied = target / name
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copied)
            copied.chmod(0o600)
    # Fetched once per checkout; it is the same everywhere (its hash stands in scripts/build_docs.py).
    for fetched in ROOT.glob("build/mermaid-*.js"):
        (target / "build").mkdir(exist_ok=True)
        shutil.copy(fetched, target / "build")


def check(scratch: Path) -> None:
    copy_clone(scratch / "clone")
    build(scratch / "clone", scratch / "again", commit_time())
    for name in (WHEEL, SOURCE):
        if (scratch / "again" / name).read_bytes() != (DIST / name).read_bytes():
            raise ReleaseError(f"{name} differs when it is built in another folder")
    shutil.rmtree(scratch / "clone")
    wheel = DIST / WHEEL
    check_run("uvx", (UV, "tool", "run", "--from", wheel, "fairlead"), scratch)
    check_run("pipx", (install_with_pipx(wheel, scratch),), scratch)
    check_run("pip", (install_with_pip(DIST / SOURCE, scratch),), scratch)
    if shutil.which("systemd-analyze"):
        verify_unit(scratch / "pip", scratch)
    if shutil.which("podman"):
        check_image(DIST / IMAGE)


def install_with_pipx(wheel: Path, scratch: Path) -> Path:
    places = {"PIPX_HOME": scratch / "pipx", "PIPX_BIN_DIR": scratch / "pipx-bin", "PIPX_MAN_DIR": scratch / "man"}
    run(UV, "tool", "run", "pipx", "install", "--quiet", "--python", interpreter(), wheel, cwd=scratch, **places)
    return scratch / "pipx-bin" / "fairlead"


def install_with_pip(archive: Path, scratch: Path) -> Path:
    run(interpreter(), "-m", "venv", scratch / "pip")
    run(scratch / "pip" / "bin" / "python", "-m", "pip", "install", "--quiet", archive, cwd=scratch)
    return scratch / "pip" / "bin" / "fairlead"


def check_run(how: str, command: tuple[Path | str, ...], scratch: Path) -> None:
    """A first training by somebody who has nothing but the artefact."""
    home = scratch / f"home-{how}"
    home.mkdir()
    try:
        said = run(*command, "run", "--", "sh", "-c", "echo runs in $PWD", cwd=home, HOME=home)
        if said != f"runs in {home}\n":
            raise ReleaseError(f"installed with {how}, a training says {said!r}")
    finally:
        run(*command, "server", "stop", cwd=home, HOME=home)


def verify_unit(venv: Path, scratch: Path) -> None:
    """systemd's own check of the unit that the wheel carries, with the command where this installation has it."""
    text = (venv / "share" / "fairlead" / UNIT.name).read_text()
    unit = scratch / UNIT.name
    unit.write_text(text.replace("/usr/local/bin/fairlead", str(venv / "bin" / "fairlead")))
    run("systemd-analyze", "verify", "--man=no", unit)


def check_image(archive: Path) -> None:
    # Bounds of its own: podman's defaults may be more than the caller itself may have.
    bounds = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096")
    run("podman", "load", "--quiet", "--input", archive)
    try:
        said = run("podman", "run", "--rm", "--network=none", *bounds, NAME, "version")
    finally:
        run("podman", "rmi", "--force", NAME)
    if f"fairlead {__version__}" not in said:
        raise ReleaseError(f"the image {archive.name} says {said!r}")


def interpreter() -> str:
    """The interpreter below the checkout's environment."""
    return str(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))


def run(*command: Path | str, cwd: Path | None = None, **variables: Path | str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd or ROOT, env=clean_environment(variables), capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"`{' '.join(words)}` failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def clean_environment(more: Mapping[str, Path | str]) -> dict[str, str]:
    """Nothing of the checkout or of a shared server here, but this machine's caches, index and certificates."""
    kept = {key: value for key, value in os.environ.items() if key not in ACTIVATED}
    kept |= {"UV_PYTHON": interpreter(), "UV_PYTHON_DOWNLOADS": "never", VARIABLE: os.devnull}
    kept.setdefault("UV_CACHE_DIR", str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uv"))
    if "PIP_CERT" in kept:
        kept.setdefault("SSL_CERT_FILE", kept["PIP_CERT"])
    if "PIP_INDEX_URL" in kept:
        kept.setdefault("UV_DEFAULT_INDEX", kept["PIP_INDEX_URL"])
    return kept | {key: str(value) for key, value in more.items()}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ReleaseError as error:
        sys.exit(str(error))
