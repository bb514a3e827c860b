"""What the server decides before it starts."""

import os

import pytest

from fairlead.app import can_serve
from fairlead.client.access.local import PATH_FLAGS
from fairlead.control.serving.urls import UrlLocation, render_url
from fairlead.model.errors import Refused
from fairlead.serve_flags import serve_parser
from fairlead.server_context import read_url_settings
from fairlead.settings import read_settings


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


def test_every_flag_with_a_path_is_made_absolute() -> None:
    actions = serve_parser()._actions  # no public list
    files = {action.option_strings[0] for action in actions if action.metavar in ("FILE", "FOLDER", "PATH")}
    assert files | {"--database", "--audit-export"} == PATH_FLAGS


def test_the_data_folder_remembers_paths_that_hold_everywhere() -> None:
    flags = ["--nodes", "n.yaml", "--tls-key=key.pem", "--audit-export", "syslog", "--database", "postgresql://h/d"]
    settings = read_settings(["--data-dir", "/nowhere", *flags], {})
    here = os.getcwd()
    want = ("--nodes", f"{here}/n.yaml", f"--tls-key={here}/key.pem", *flags[3:])
    assert (settings.flags, settings.nodes_file) == (want, f"{here}/n.yaml")


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        (["--proxy-port", "7"], "http://x.localhost:7/"),
        (["--ingress-class", "nginx", "--ingress-server", "here"], "http://x.localhost/"),
        (["--ingress-class", "nginx", "--ingress-server", "here", "--ingress-tls"], "https://x.localhost/"),
    ],
    ids=["our proxy", "an ingress controller", "an ingress controller with a certificate"],
)
def test_urls_belong_to_the_first_claimant(flags: list[str], want: str) -> None:
    settings = read_settings(["--data-dir", "/nowhere", "--engine", "kubernetes", *flags], {})
    assert render_url(UrlLocation("x.localhost"), read_url_settings(settings, None)) == want


@pytest.mark.parametrize(
    "flags",
    [
        ["--ingress-class", "nginx", "--ingress-server", "here"],
        ["--engine", "kubernetes", "--ingress-class", "nginx"],
        ["--engine", "kubernetes", "--ingress-server", "here"],
        ["--engine", "kubernetes", "--ingress-tls"],
    ],
    ids=["on this machine", "no server", "no class", "only a certificate"],
)
def test_ingresses_need_a_cluster_a_class_and_a_server(flags: list[str]) -> None:
    with pytest.raises(Refused, match="--engine kubernetes, --ingress-class and --ingress-server"):
        read_url_settings(read_settings(["--data-dir", "/nowhere", *flags], {}), None)


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        pytest.param([], (14 * 86_400_000, 10_000_000_000), id="unless told otherwise"),
        pytest.param(["--keep-logs", "2d", "--keep-logs-size", "500M"], (2 * 86_400_000, 500_000_000), id="told"),
        pytest.param(["--keep-logs-size", "0"], (14 * 86_400_000, 0), id="none"),
    ],
)
def test_how_much_output_is_kept(flags: list[str], want: tuple[int, int]) -> None:
    settings = read_settings(["--data-dir", "/nowhere", *flags], {})
    assert (settings.control.keep_logs, settings.keep_logs_size) == want


def test_an_invalid_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_settings(["--data-dir", "/nowhere", "--keep-logs-size", "much"], {})
    assert "'much' is not a size such as 500M or 10G" in capsys.readouterr().err
