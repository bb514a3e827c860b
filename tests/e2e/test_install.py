"""`uv tool install .`, and pip with the source distribution, give a command that works anywhere with its documentation,
and nothing of the checkout is left."""

import os
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = next((str(path) for path in (ROOT / ".tools/uv", ROOT / ".tools/bin/uv") if path.exists()), "uv")
FOLDERS = ("src", "docs", "scripts", "examples", "deploy", "tests/field_proofs")
FILES = ("*.toml", "*.md", "*.py", "LICENSE", "build/mermaid-*.js")
#: What a clone does not have.
MADE = ("__pycache__", "generated", "kinds.json")

pytestmark = pytest.mark.xdist_group("install")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy as a clone would be, so that nothing of the checkout's environment can help."""
    target = tmp_path / "source"
    for name in FOLDERS:
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns(*MADE))
    for pattern in FILES:
        for path in ROOT.glob(pattern):
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(path, copy)
    return target


def run(*command: str | Path, cwd: Path, **variables: str | Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    environment |= {key: str(value) for key, value in variables.items()}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install_with_uv(source: Path, folder: Path) -> Path:
    places = {"UV_TOOL_DIR": folder / "tools", "UV_TOOL_BIN_DIR": folder / "bin"}
    run(UV, "tool", "install", "--quiet", ".", cwd=source, **places)
    return folder / "bin" / "fairlead"


def install_with_pip(source: Path, folder: Path) -> Path:
    run(UV, "venv", "--quiet", "--seed", folder / "venv", cwd=source)
    run(UV, "build", "--quiet", "--sdist", "--out-dir", folder, cwd=source)
    (archive,) = folder.glob("fairlead-*.tar.gz")
    run(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", archive, cwd=folder)
    return folder / "venv" / "bin" / "fairlead"


@pytest.mark.parametrize("install", [install_with_uv, install_with_pip], ids=["uv", "pip"])
def test_installed_command_runs_a_training(install, source: Path, tmp_path: Path) -> None:
    fairlead = install(source, tmp_path)
    shutil.rmtree(source)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    variables = {"FAIRLEAD_DATA_DIR": tmp_path / "data", "HOME": elsewhere}
    assert "usage" in run(fairlead, "--help", cwd=elsewhere, **variables).lower()
    try:
        output = run(fairlead, "run", "--", "sh", "-c", "echo it runs in $PWD", cwd=elsewhere, **variables)
        assert output == f"it runs in {elsewhere}\n"
        url = run(fairlead, "server", "start", cwd=elsewhere, **variables).split()[0]
        with urllib.request.urlopen(f"{url}/docs/reference/cli/") as page:
            assert b"fairlead training submit" in page.read()
    finally:
        run(fairlead, "server", "stop", cwd=elsewhere, **variables)
