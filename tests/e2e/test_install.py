"""The wheel and the source distribution give a command that works anywhere, with its documentation, without anything of
the checkout; and both are the same bytes wherever they are built."""

import shutil
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import __version__
from scripts import release
from tests.e2e import wheels

pytestmark = pytest.mark.xdist_group("install")


def install_with_uv(built: Path, folder: Path) -> tuple[Path | str, ...]:
    places = {"UV_TOOL_DIR": folder / "tools", "UV_TOOL_BIN_DIR": folder / "bin"}
    release.run(release.UV, "tool", "install", "--quiet", built / release.WHEEL, cwd=folder, **places)
    return (folder / "bin" / "fairlead",)


def run_with_uvx(built: Path, folder: Path) -> tuple[Path | str, ...]:
    return (release.UV, "tool", "run", "--quiet", "--from", built / release.WHEEL, "fairlead")


def install_with_pipx(built: Path, folder: Path) -> tuple[Path | str, ...]:
    return (release.install_with_pipx(built / release.WHEEL, folder),)


def install_from_source(built: Path, folder: Path) -> tuple[Path | str, ...]:
    """By uv, which is quicker than pip; `make release` does it with pip."""
    release.run(release.UV, "venv", "--quiet", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    release.run(release.UV, "pip", "install", "--quiet", "--python", python, built / release.SOURCE, cwd=folder)
    return (folder / "venv" / "bin" / "fairlead",)


@pytest.mark.parametrize(
    "install",
    [install_with_uv, run_with_uvx, install_with_pipx, install_from_source],
    ids=["uv", "uvx", "pipx", "source"],
)
def test_installed_command_runs_a_training(
    install: Callable[[Path, Path], tuple[Path | str, ...]], built: Path, tmp_path: Path
) -> None:
    command = install(built, tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    try:
        words = "echo it runs in $PWD with $(command -v python3)"
        output = release.run(*command, "run", "--", "sh", "-c", words, cwd=home, HOME=home)
        python = shutil.which("python3", path=release.clean_environment({})["PATH"])
        assert output == f"it runs in {home} with {python}\n"
        url = release.run(*command, "server", "start", cwd=home, HOME=home).split()[0]
        with urllib.request.urlopen(f"{url}/docs/reference/cli/") as page:
            assert b"fairlead training submit" in page.read()
    finally:
        release.run(*command, "server", "stop", cwd=home, HOME=home)


def test_two_builds_are_the_same_bytes(built: Path, tmp_path: Path) -> None:
    release.copy_clone(tmp_path / "elsewhere")
    release.build(tmp_path / "elsewhere", tmp_path / "dist", wheels.BUILD_TIME, has_page=False)
    for name in (release.WHEEL, release.SOURCE):
        assert (tmp_path / "dist" / name).read_bytes() == (built / name).read_bytes(), name


def test_the_wheel_carries_the_unit_and_its_version(built: Path, tmp_path: Path) -> None:
    [fairlead] = install_with_uv(built, tmp_path)
    assert f"fairlead {__version__}" in release.run(fairlead, "version", cwd=tmp_path, HOME=tmp_path)
    environment = tmp_path / "tools" / "fairlead-workloads"
    unit = (environment / "share" / "fairlead" / "fairlead.service").read_text()
    assert "KillMode=process" in unit
    if shutil.which("systemd-analyze"):
        release.verify_unit(environment, tmp_path)
