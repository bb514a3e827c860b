"""When `ui` opens a browser, and that it leaves an installed package alone."""

from pathlib import Path

import pytest

from fairlead.cli.server.ui import build_page, has_desktop
from fairlead.client import ClientError


@pytest.mark.parametrize(
    ("platform", "environ", "want"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ""}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("darwin", {}, True),
    ],
)
def test_a_browser_is_opened_on_a_desktop_only(platform: str, environ: dict[str, str], want: bool) -> None:
    assert has_desktop(platform, environ) is want


def test_only_a_checkout_is_built(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(".PHONY: web\nweb:\n\t@touch built\n")
    build_page(tmp_path)
    assert not (tmp_path / "built").exists()
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "package.json").write_text("{}")
    build_page(tmp_path)
    assert (tmp_path / "built").exists()


def test_a_build_that_fails_says_how_to_try_again(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(".PHONY: web\nweb:\n\t@false\n")
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "package.json").write_text("{}")
    with pytest.raises(ClientError, match="make web"):
        build_page(tmp_path)
