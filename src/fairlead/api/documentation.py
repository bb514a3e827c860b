"""The documentation's site at `/docs`: the files that `make docs` built, as a wheel carries them.

`application.py` adds the operations to its table. Its pages may load nothing from another host.
"""

from pathlib import Path

from starlette.responses import RedirectResponse, Response

import fairlead
from fairlead.api.http.errors import HttpError
from fairlead.api.http.files import FolderFiles, page_operation
from fairlead.api.http.operation import Call, Operation

_PACKAGE = Path(fairlead.__file__).parent
_CHECKOUT = _PACKAGE.parents[1]
#: In a wheel the site is part of the package; in a checkout `make docs` leaves it at the root.
SITE = _CHECKOUT / "site" if (_CHECKOUT / "zensical.toml").exists() else _PACKAGE / "site"

# The theme has scripts in its pages, and diagrams have their styles in them.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    # Ask every time whether it has changed: the next version of the server has other pages at the same paths.
    "cache-control": "no-cache",
}
_NOT_BUILT = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Fairlead documentation</title>
<p>The documentation has not been built. Run <code>make docs</code> in the checkout, then load this page again.
<p><a href="/api/docs">The API's description</a> is there without it.
</html>
"""


def documentation_operations(folder: Path = SITE) -> tuple[Operation, ...]:
    files = FolderFiles(folder)

    async def get_front(call: Call) -> Response:
        return RedirectResponse("/docs/")

    async def get_page(call: Call) -> Response:
        path = call.path["path"]
        is_folder = path == "" or path.endswith("/")
        response = await files.load(f"{path}index.html" if is_folder else path, call)
        if response is None and not is_folder and await files.load(f"{path}/index.html", call):
            response = RedirectResponse(f"/docs/{path}/")
        if response is None and path == "":
            response = Response(_NOT_BUILT, 200, None, "text/html")
        if response is None:
            raise HttpError(404, f"There is no page /docs/{path[:200]}; /docs/ leads to all pages")
        response.headers.update(_HEADERS)
        return response

    summary = "A page of the documentation"
    return (
        page_operation("/docs", "get_documentation", summary, get_front),
        page_operation("/docs/{path*}", "get_documentation_page", summary, get_page),
    )
