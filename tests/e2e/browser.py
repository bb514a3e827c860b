"""Debian's Chromium for tests: it opens pages of a server and keeps what went wrong on the way."""

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

CHROMIUM = "/usr/bin/chromium"
#: Nothing that the browser asks for on its own account.
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser with an empty profile of its own. Without its sandbox, which root cannot have."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=list(QUIET))
        yield browser
        browser.close()


class Visit:
    """One tab at one server, and all that it complains about."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url
        self._context = browser.new_context(**options)
        self.page: Page = self._context.new_page()
        #: Addresses at other hosts that the pages asked for.
        self.foreign: list[str] = []
        #: Errors on the console and errors that no script caught.
        self.errors: list[str] = []
        self.page.on("request", self._see_request)
        self.page.on("console", self._see_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _see_request(self, request: Request) -> None:
        asked = urlsplit(request.url)
        if asked.scheme not in ("data", "blob") and asked.netloc != urlsplit(self.url).netloc:
            self.foreign.append(request.url)

    def _see_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def open(self, path: str) -> Page:
        answer = self.page.goto(self.url + path)
        assert answer is not None
        assert answer.status == 200, f"{path} answers {answer.status}"
        return self.page

    def find_texts(self) -> list[str]:
        """Every piece of text on the page."""
        return [node["nodeValue"].strip() for node in self.find_nodes("#text")]

    def find_nodes(self, name: str) -> list[dict[str, Any]]:
        """The nodes of that name, also those in closed shadow trees, where no selector reaches."""
        session = self._context.new_cdp_session(self.page)
        root = session.send("DOM.getDocument", {"depth": -1, "pierce": True})["root"]
        session.detach()
        return [node for node in _walk(root) if node["nodeName"].lower() == name]

    def close(self) -> None:
        self._context.close()


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in (*node.get("children", ()), *node.get("shadowRoots", ())):
        yield from _walk(inner)
