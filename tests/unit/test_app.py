"""What the server decides before it starts."""

import pytest

from fairlead.app import can_serve, read_settings


@pytest.mark.parametrize(
    ("platform", "flags", "want"),
    [
        pytest.param("linux", [], True, id="linux"),
        pytest.param("linux", ["--api-only"], True, id="linux, the API only"),
        pytest.param("darwin", [], False, id="elsewhere"),
        pytest.param("darwin", ["--api-only"], True, id="elsewhere, the API only"),
    ],
)
def test_pods_want_linux(platform: str, flags: list[str], want: bool) -> None:
    assert can_serve(platform, read_settings([*flags, "--data-dir", "/nowhere"], {})) is want


def test_settings_from_flags_win_over_the_environment() -> None:
    environment = {"FAIRLEAD_DATA_DIR": "/from/environment", "FAIRLEAD_DATABASE": "postgresql:///there"}
    settings = read_settings(["--data-dir", "/from/flag"], environment)
    assert str(settings.data_dir) == "/from/flag"
    assert settings.database == "postgresql:///there"
