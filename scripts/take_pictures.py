"""Takes pictures of every view of the web page in both themes, for the documentation. `make docs` calls it.

They are kept in build/pictures until the page or the scene changes. Without Debian's Chromium none are taken, and the
documentation is built without them.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page

from scripts.generate_pictures import INDEX, THEMES
from tests.e2e.browser import CHROMIUM, Visit, open_browser
from tests.web.scene import Scene, institute
from tests.web.views import VIEWS, View, show

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "build" / "pictures"
#: Says what the built page was made from (scripts/build_web.py).
BUILT = ROOT / "src" / "fairlead" / "web" / "inputs.txt"
STAMP = "inputs.txt"
#: What comes after the first answer, such as a chart or the scheduler's estimates, is in the picture too.
SETTLE_MS = 1200
SIZE = {"width": 1440, "height": 900}


def main() -> int:
    if not Path(CHROMIUM).exists():
        return go_without(f"{CHROMIUM} is not installed; `make system-packages` installs it")
    if subprocess.run([ROOT / "scripts" / "web.sh"]).returncode:
        return go_without("the web page could not be built")
    inputs = digest()
    if (PICTURES / STAMP).exists() and (PICTURES / STAMP).read_text() == inputs:
        return 0
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    print(f"taking pictures of {len(VIEWS)} views of the web page", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, institute(Path(folder)) as scene, open_browser() as browser:
        take_pictures(browser, scene, PICTURES, VIEWS)
    (PICTURES / STAMP).write_text(inputs)
    return 0


def go_without(reason: str) -> int:
    shutil.rmtree(PICTURES, ignore_errors=True)
    print(f"the documentation is built without pictures of the web page: {reason}", file=sys.stderr)
    return 0


def digest() -> str:
    """What the pictures depend on."""
    files = [BUILT, Path(__file__), *sorted((ROOT / "tests" / "web").glob("[sv]*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def take_pictures(browser: Browser, scene: Scene, folder: Path, views: Sequence[View]) -> None:
    for theme in THEMES:
        visit = Visit(browser, scene.server.url, color_scheme=theme, viewport=SIZE)
        visit.open(scene.server.call("POST", "/api/v1/session/links").json["path"])
        for view in views:
            page = show(visit, view, scene.ids)
            (folder / f"{view.name}-{theme}.webp").write_bytes(take_picture(page))
        visit.close()
    (folder / INDEX).write_text(json.dumps({view.name: view.caption for view in views}, indent=1))


def take_picture(page: Page) -> bytes:
    """What the window shows, as WebP: a fifth of a PNG's size. Playwright itself writes none."""
    session = page.context.new_cdp_session(page)
    page.wait_for_timeout(SETTLE_MS)
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
    session.detach()
    return base64.b64decode(answer["data"])


if __name__ == "__main__":
    sys.exit(main())
