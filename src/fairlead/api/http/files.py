"""Files of a folder for browsers: the documentation and the page are served with it."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from fairlead.api.http.operation import Call, Handler, Operation


class FolderFiles:
    """The folder may come into being later, and may change while the server runs."""

    def __init__(self, folder: Path) -> None:
        self._files = StaticFiles(directory=folder, check_dir=False)

    async def load(self, path: str, call: Call) -> Response | None:
        """The answer with a file; None if there is none."""
        try:
            return await self._files.get_response(path, call.request.scope)
        except HTTPException:
            return None


def page_operation(path: str, id: str, summary: str, run: Handler) -> Operation:
    """A page for browsers, which needs no token and is not part of the API's description."""
    return Operation(
        method="GET", path=path, id=id, tag="Pages", summary=summary, run=run, is_public=True, is_page=True
    )
