"""In which environments another version can be installed, and by which command."""

from pathlib import Path

import pytest

from fairlead.cli.server.installation import InstalledTool, find_installation, render_install, version_of_wheel
from fairlead.client import ClientError

WHEEL = Path("/files/fairlead_workloads-2.0-py3-none-any.whl")
RECEIPT = '[tool]\nentrypoints = [{ name = "fairlead", install-path = "/usr/local/bin/fairlead" }]\n'


@pytest.mark.parametrize(
    ("installation", "want_command", "want_variables"),
    [
        pytest.param(
            InstalledTool("uv tool", Path("/opt/tools/fairlead-workloads"), Path("/usr/local/bin")),
            f"uv tool install --quiet --force --reinstall-package fairlead-workloads {WHEEL}",
            {"UV_TOOL_DIR": "/opt/tools", "UV_TOOL_BIN_DIR": "/usr/local/bin"},
            id="uv",
        ),
        pytest.param(
            InstalledTool("virtual environment", Path("/opt/fairlead"), Path("/opt/fairlead/bin")),
            f"/opt/fairlead/bin/python -m pip install --quiet {WHEEL}",
            {},
            id="a virtual environment",
        ),
        pytest.param(
            InstalledTool("pipx", Path("/opt/pipx/venvs/fairlead-workloads"), Path("/opt/pipx/venvs/x/bin")),
            f"/opt/pipx/venvs/fairlead-workloads/bin/python -m pip install --quiet {WHEEL}",
            {},
            id="pipx that is not on the path",
        ),
    ],
)
def test_each_environment_has_its_installer(
    installation: InstalledTool, want_command: str, want_variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    command, variables = render_install(installation, WHEEL)
    assert " ".join(command) == want_command
    assert variables == want_variables


def test_pipx_installs_where_it_keeps_its_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipx").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = Path("/opt/pipx/venvs/fairlead-workloads")
    command, variables = render_install(InstalledTool("pipx", folder, folder / "bin"), WHEEL)
    assert " ".join(command) == f"pipx install --quiet --force {WHEEL}"
    assert variables == {"PIPX_HOME": "/opt/pipx"}


@pytest.mark.parametrize(
    ("name", "file", "text", "want_kind"),
    [
        pytest.param("tools/x", "uv-receipt.toml", RECEIPT, "uv tool", id="uv"),
        pytest.param("venvs/x", "pipx_metadata.json", "{}", "pipx", id="pipx"),
        pytest.param("venv", "pyvenv.cfg", "", "virtual environment", id="a virtual environment"),
    ],
)
def test_environments_are_distinguished(tmp_path: Path, name: str, file: str, text: str, want_kind: str) -> None:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    (folder / file).write_text(text)
    assert find_installation(folder, is_checkout=False).kind == want_kind


@pytest.mark.parametrize(
    ("name", "is_checkout", "want_text"),
    [
        pytest.param("archive-v0/x", False, "uvx runs the version that it is given", id="uvx"),
        pytest.param("usr", False, "installed in the system's Python", id="the system"),
        pytest.param("venv", True, "git pull", id="a checkout"),
    ],
)
def test_other_environments_are_left_alone(tmp_path: Path, name: str, is_checkout: bool, want_text: str) -> None:
    with pytest.raises(ClientError, match=want_text):
        find_installation(tmp_path / name, is_checkout=is_checkout)


def test_the_version_is_in_the_name_of_the_wheel() -> None:
    assert version_of_wheel(WHEEL) == "2.0"
    for other in ("fairlead-2.0-py3-none-any.whl", "fairlead_workloads-2.0.tar.gz"):
        with pytest.raises(ClientError, match="is not a wheel of fairlead-workloads"):
            version_of_wheel(Path(other))
