"""`make image`: the server's image as an OCI archive, made from this checkout without Docker and without a base image.

It holds the interpreter that makes it with its standard library, what `uv.lock` names for the server, and Fairlead; no
shell and no package manager. podman, skopeo, `ctr images import` and `docker load` (25 or newer) read it.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.cluster.images import Image, Layer, write_archive
from deploy.cluster.node import make_python_layer
from fairlead import __version__

ROOT = Path(__file__).parents[1]
PLACE = "/opt/fairlead"
USER = "65532:65532"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.image", description=__doc__)
    parser.add_argument("target", type=Path, nargs="?", default=ROOT / "dist" / f"fairlead-{__version__}.oci.tar")
    parser.add_argument("--name", default=f"docker.io/library/fairlead:{__version__}", help="what it is called")
    asked = parser.parse_args()
    asked.target.parent.mkdir(parents=True, exist_ok=True)
    make_image(asked.target, asked.name)
    sys.stdout.write(f"{asked.target}\n")
    return 0


def make_image(target: Path, name: str, package: Path = ROOT / "src" / "fairlead") -> None:
    """`package` is the server's code, which a test of upgrades changes."""
    with tempfile.TemporaryDirectory() as work:
        install_dependencies(Path(work))
        dependencies, own = Layer(), Layer()
        dependencies.add_tree(Path(work), f"{PLACE}/lib")
        for shared in Path(work).rglob("*.so*"):
            dependencies.add_libraries(shared)
        own.add_tree(package, f"{PLACE}/lib/fairlead")
        # What `make docs` built, which comes before `make image`.
        if (ROOT / "site").is_dir():
            own.add_tree(ROOT / "site", f"{PLACE}/lib/fairlead/site")
        own.texts = render_identity()
        # Where the volumes of the manifests are mounted; without one, nothing can be written.
        own.folders |= {"/data": 0o777, "/tmp": 0o1777}  # noqa: S108 - in the image
        settings = {
            "User": USER,
            "Env": ["PATH=/usr/local/bin", f"PYTHONPATH={PLACE}/lib", "PYTHONDONTWRITEBYTECODE=1", "HOME=/data"],
            "Entrypoint": ["python3", "-m", "fairlead"],
            "Cmd": ["serve", "--data-dir=/data", "--host=0.0.0.0", "--insecure"],
            "WorkingDir": "/data",
            "ExposedPorts": {"7420/tcp": {}, "7421/tcp": {}},
        }
        # From what changes seldom to what changes daily, so that most of it is known wherever an older one was.
        write_archive(target, [Image((name,), (make_python_layer(), dependencies, own), settings)])


def install_dependencies(target: Path) -> None:
    """The locked versions of what the server needs, nothing of what tests need."""
    uv = str(ROOT / ".tools" / "uv")
    words = ["export", "--frozen", "--no-default-groups", "--no-emit-project", "--quiet"]
    listed = subprocess.run([uv, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    listing = target.parent / f"{target.name}.txt"
    listing.write_text(listed)
    install = ["pip", "install", "--quiet", "--python", sys.executable, "--require-hashes", "--target", str(target)]
    try:
        subprocess.run([uv, *install, "-r", str(listing)], cwd=ROOT, check=True)
    finally:
        listing.unlink()


def render_identity() -> dict[str, str]:
    return {
        "/etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nfairlead:x:65532:65532:fairlead:/data:/sbin/nologin\n",
        "/etc/group": "root:x:0:\nfairlead:x:65532:\n",
        "/etc/nsswitch.conf": "hosts: files dns\n",
    }


if __name__ == "__main__":
    sys.exit(main())
