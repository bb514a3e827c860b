"""`ui`: opens the web page in a browser, signed in as the caller. In a checkout it builds the page first."""

import os
import subprocess
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import fairlead
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag
from fairlead.cli.session.background import find_or_start
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import data_folder
from fairlead.client import ClientError

_PACKAGE = Path(fairlead.__file__).parent
_CHECKOUT = _PACKAGE.parents[1]
_LINK = "/api/v1/session/links"


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Open the web page in a browser, signed in",
            _open,
            (
                Flag("print", "Print the link only", "boolean"),
                Flag("plain", "Print the page's address only, without signing in", "boolean"),
            ),
            details="The link works once, within two minutes. Without a desktop it is only printed.",
        ),
    )


def _open(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    try:
        if not session.is_elsewhere:
            find_or_start(data_folder(invocation), None, session.console.say)
        url = session.client.url.rstrip("/")
        if invocation.get("plain"):
            session.console.data(f"{url}/ui/")
            return OK
        if not session.is_elsewhere:
            build_page(_CHECKOUT)
        link = url + session.client.request("POST", _LINK)["path"]
        session.console.data(link)
        if not invocation.get("print") and has_desktop(sys.platform, invocation.environment.environ):
            webbrowser.open(link)
        return OK
    finally:
        session.close()


def has_desktop(platform: str, environ: Mapping[str, str]) -> bool:
    """Whether a browser with windows can be opened; a text browser would take the terminal."""
    return platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def build_page(checkout: Path) -> None:
    """Build the page if this is a checkout; it shows its progress, and does nothing if the page is current."""
    if not (checkout / "web" / "package.json").exists():
        return
    # The program is the checkout's own, called for whoever works in it.
    done = subprocess.run(["make", "--no-print-directory", "-C", os.fspath(checkout), "web"], stdout=sys.stderr)
    if done.returncode:
        raise ClientError("The page could not be built; the lines above say why. `make web` tries again.")
