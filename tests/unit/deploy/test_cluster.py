"""What the commands around a development cluster say and do where no cluster is started."""

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster import cluster, control
from deploy.cluster.api import Api
from deploy.cluster.certificates import write_certificates, write_users
from deploy.cluster.errors import ClusterError
from deploy.cluster.layout import Layout

ROOT = Path(__file__).parents[3]
NOBODY = 65534


@pytest.mark.parametrize(("verb", "name"), [("up", "helm"), ("build", "nothing")])
def test_what_cannot_be_added_is_refused_before_anything_starts(verb: str, name: str, tmp_path: Path) -> None:
    """Helm is built with the cluster, but does not run in it."""
    words = [sys.executable, "-m", "deploy.cluster", "--folder", str(tmp_path), verb, "--with", f"kubeflow,{name}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"argument --with: {name} is none of" in done.stderr


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Whoever tests is somebody else than root for that long."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a kubeconfig, certificates and a supervisor's socket of root's; reached by all, unlike pytest's folders."""
    with tempfile.TemporaryDirectory() as made, socket.socket(socket.AF_UNIX) as listener:
        Path(made).chmod(0o755)
        layout = Layout(Path(made), 0)
        write_certificates(layout)
        write_users(layout)
        listener.bind(f"{made}/control.sock")
        listener.listen()
        yield layout.folder


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes files that another user may not read")


@needs_root
def test_orders_of_others_are_refused_with_a_message(folder: Path) -> None:
    with as_nobody(), pytest.raises(ClusterError, match=r"takes orders from root only\. Try with sudo"):
        control.observe(folder)


@needs_root
def test_others_may_not_end_it(folder: Path) -> None:
    with as_nobody(), pytest.raises(ClusterError, match=r"needs root.*Try with sudo"):
        cluster.down(folder)
    assert folder.exists()


@needs_root
def test_the_kubeconfig_belongs_to_the_caller_of_sudo(folder: Path) -> None:
    kubeconfig = folder / "kubeconfig"
    with as_nobody(), pytest.raises(ClusterError, match="Try with sudo"):
        Api(kubeconfig)
    cluster.hand_over(kubeconfig, {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)})
    with as_nobody():
        Api(kubeconfig).close()
        assert (folder / "certificates" / "ca.crt").read_text()
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600


def test_keys_are_private(folder: Path) -> None:
    keys = sorted((folder / "certificates").rglob("*.key"))
    assert "service-accounts.key" in [key.name for key in keys]
    assert [key.name for key in keys if stat.S_IMODE(key.stat().st_mode) != 0o600] == []


def test_orders_to_a_missing_folder_say_that_no_cluster_runs_there(tmp_path: Path) -> None:
    with pytest.raises(control.NotRunning, match="make cluster-up"):
        control.stop(tmp_path / "nothing", "etcd")


@pytest.mark.parametrize("ends", [True, False], ids=["its clusters end", "a cluster does not end"])
def test_make_clean_ends_clusters_before_it_removes_their_files(tmp_path: Path, ends: bool) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    declarations = [f"src/fairlead/{room}/made_up.py" for room in ("model", "kinds", "formats", "engines/declared")]
    [tables] = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("tables := ")]
    made = ("src/fairlead/cli/generate.py", *tables.split()[2:])
    for name in ("pyproject.toml", "uv.lock", "scripts/setup.sh", "scripts/install_uv.py", *declarations, *made):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("cluster/volume-plugins", "test-clusters/gw0/layout.json"):
        (tmp_path / ".tools" / name).mkdir(parents=True)
    checked = subprocess.run("pwd | cksum | cut -d' ' -f1", shell=True, cwd=tmp_path, capture_output=True, text=True)
    for stamp in ("ready", "runnable"):
        (tmp_path / ".tools" / f"{stamp}-{checked.stdout.strip()}").touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> called\n[ -d .tools/cluster ] && exit {0 if ends else 1}\n')
    python.chmod(0o755)
    done = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True)
    called = [f"-m deploy.cluster down --folder .tools/{name}" for name in ("cluster", "test-clusters/gw0")]
    if ends:
        assert (done.returncode, done.stderr) == (0, "")
        assert not (tmp_path / ".tools").exists()
        assert (tmp_path / "called").read_text().splitlines() == called
    else:
        assert done.returncode != 0
        assert python.exists()
        assert (tmp_path / ".tools" / "cluster").exists()
        assert (tmp_path / "called").read_text().splitlines() == called[:1]
