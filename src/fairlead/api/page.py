"""The web page at `/ui/`: the files that `make web` built, as a wheel carries them.

`application.py` adds the operations to its table. The page's own router shows the view of a path, so every path
without a file answers with the page itself. Only API requests need a session; the files are public.
"""

from pathlib import Path

from starlette.responses import RedirectResponse, Response

import fairlead
from fairlead.api.http.errors import HttpError
from fairlead.api.http.files import FolderFiles, page_operation
from fairlead.api.http.operation import Call, Operation
from fairlead.api.people.browser_sessions import PAGE_PATH

FOLDER = Path(fairlead.__file__).parent / "web"

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "vary": "accept-encoding",
}
#: Files below assets/ have a hash of their content in their names; the page itself names the current ones.
_FOREVER, _ASK = "public, max-age=31536000, immutable", "no-cache"
#: Compressed files beside the plain ones, best first.
_ENCODINGS = {"br": ".br", "gzip": ".gz"}
_NOT_BUILT = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Fairlead</title>
<p>The page has not been built. Run <code>fairlead ui</code> or <code>make web</code> in the checkout, then load this
page again.
<p><a href="/api/docs">The API's description</a> is there without it.
</html>
"""


def page_operations(folder: Path = FOLDER) -> tuple[Operation, ...]:
    files = FolderFiles(folder)

    async def load_smallest(path: str, call: Call) -> Response | None:
        """The file in the best encoding that the browser takes."""
        for name, suffix in _ENCODINGS.items():
            if call.accepts(name) and (response := await files.load(path + suffix, call)):
                response.headers["content-encoding"] = name
                return response
        return await files.load(path, call)

    async def get_front(call: Call) -> Response:
        return RedirectResponse(PAGE_PATH)

    async def get_page(call: Call) -> Response:
        path = call.path["path"]
        is_asset = path.startswith("assets/")
        response = await load_smallest(path if is_asset else "index.html", call)
        if response is None and is_asset:
            raise HttpError(404, f"The page has no file {path[:200]}; load it again to get the current version")
        if response is None:
            response = Response(_NOT_BUILT, 200, None, "text/html")
        response.headers.update(_HEADERS)
        response.headers["cache-control"] = _FOREVER if is_asset else _ASK
        return response

    return (
        page_operation("/", "get_root", "The web page", get_front),
        page_operation("/ui", "get_page_root", "The web page", get_front),
        page_operation("/ui/{path*}", "get_web_page", "The web page", get_page),
    )
