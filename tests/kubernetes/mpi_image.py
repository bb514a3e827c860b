"""An image in which MPI runs as its operator wants it: sshd, ssh, mpirun and Python with mpi4py, from this machine."""

import subprocess
from pathlib import Path

from deploy.cluster.images import Image, Layer, write_archive
from deploy.cluster.layout import Layout
from deploy.cluster.node import import_images, make_busybox_layer, make_python_layer

MPI_IMAGE = "fairlead.test/mpi:4"
_PACKAGES = "/usr/lib/python3/dist-packages"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_TREES = ("/usr/share/openmpi", "/etc/openmpi", f"{_PACKAGES}/mpi4py")
_SSHD, _KEY = "/usr/lib/openssh/sshd", "/etc/ssh/host_key"
_PLUGINS = ("openmpi", "pmix2")
#: Without these mpirun starts nothing for root.
_AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")


def provide_image(layout: Layout, folder: Path) -> None:
    archive = folder / "mpi.tar"
    settings = {"Env": [f"PATH={_PATH}", f"PYTHONPATH={_PACKAGES}", *_AS_ROOT], "Cmd": ["sh"]}
    layers = (make_busybox_layer(), make_python_layer(), make_mpi_layer(folder))
    write_archive(archive, [Image((MPI_IMAGE,), layers, settings)])
    import_images(layout, archive)


def make_mpi_layer(folder: Path) -> Layer:
    layer = Layer(folders={"/run/sshd": 0o755, "/root": 0o700, "/root/.ssh": 0o700})
    for program in ("/usr/bin/ssh", "/usr/bin/orted"):
        layer.add_program(Path(program))
    layer.add_program(Path("/usr/sbin/sshd"), _SSHD)
    layer.files["/usr/sbin/sshd"] = make_start(folder)
    layer.add_program(Path("/usr/bin/mpirun").resolve(), "/usr/bin/mpirun")
    places = [place for name in _PLUGINS for place in Path("/usr/lib").glob(f"*-linux-gnu/{name}")]
    for place in (*places, *map(Path, _TREES)):
        layer.add_tree(place, str(place))
        for shared in place.rglob("*.so"):
            layer.add_libraries(shared)
    layer.texts = {
        "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n",
        "/etc/ssh/sshd_config": f"HostKey {_KEY}\nPermitRootLogin yes\nStrictModes no\nUsePAM no\n",
        "/etc/ssh/ssh_config": "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n",
        _KEY: make_key(folder),
    }
    return layer


def make_key(folder: Path) -> str:
    path = folder / "host_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.read_text()


def make_start(folder: Path) -> Path:
    """What is called sshd: the key's file is nobody else's first, which the layers of an image do not say."""
    path = folder / "sshd"
    path.write_text(f'#!/bin/sh\nchmod 600 {_KEY}\nexec {_SSHD} "$@"\n')
    path.chmod(0o755)
    return path
