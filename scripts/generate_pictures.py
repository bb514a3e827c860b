"""Renders the page with pictures of the web page. `take_pictures.py` takes them; without them the page says so."""

import json
from pathlib import Path

#: In the folder of the pictures: their names and captions, in the order of the page.
INDEX = "index.json"
THEMES = ("light", "dark")

_HEAD = """# Pictures of the web page

"""
_NONE = """This copy of the documentation has no pictures: they are taken by `make docs` in a checkout, with Debian's
Chromium, and are not part of wheels. [The web page](../web.md) says what each view shows.
"""
_INTRODUCTION = """Every view of [the web page](../web.md), with an invented institute: two departments, four projects,
and workloads of every kind that run, wait and have failed. The pictures follow the theme of this site.
"""


def render_page(folder: Path | None) -> str:
    """The page for the pictures in a folder, which the site has as `assets/pictures`."""
    if folder is None or not (folder / INDEX).exists():
        return _HEAD + _NONE
    captions: dict[str, str] = json.loads((folder / INDEX).read_text())
    parts = [_HEAD + _INTRODUCTION]
    for name, caption in captions.items():
        pictures = [f"![{caption}](../assets/pictures/{name}-{theme}.webp#only-{theme})" for theme in THEMES]
        parts.append("\n".join([f"## {caption}", "", *pictures, ""]))
    return "\n".join(parts)
