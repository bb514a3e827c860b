"""`make docs`: the documentation as a site in site/. Every broken link and every missing anchor fails the build.

With --pictures it has pictures of the web page, which a browser takes (take_pictures.py). Wheels are built without,
because they must be the same wherever they are built.

The pages of docs/ are copied to build/docs, and the reference pages rendered beside them. Links to files of the
repository outside docs/ lead to copies of these files. Mermaid comes from the npm registry, with a fixed hash.
"""

import argparse
import base64
import hashlib
import io
import os
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scripts.generate_answers import render_page as render_answers
from scripts.generate_conformance import render_page as render_conformance
from scripts.generate_docs import render_cli, render_rest
from scripts.generate_fields import render_page as render_fields
from scripts.generate_pictures import render_page as render_pictures
from scripts.generate_yaml import render_page as render_yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: docs_dir and site_dir of zensical.toml.
STAGE = ROOT / "build" / "docs"
SITE = ROOT / "site"
#: Where take_pictures.py leaves them.
PICTURES = ROOT / "build" / "pictures"
#: Only for the theme's templates.
OVERRIDES = DOCS / "overrides"
REFERENCES: dict[str, Callable[[], str]] = {
    "cli.md": render_cli,
    "rest.md": render_rest,
    "fields.md": render_fields,
    "conformance.md": render_conformance,
    "workload-yaml.md": render_yaml,
    "answers.md": render_answers,
    "pictures.md": lambda: render_pictures(STAGE / "assets" / "pictures"),
}
#: Pages that stand elsewhere in the repository.
ELSEWHERE = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}

#: The smaller bundle of Mermaid's own team: no mind maps, no formulas.
MERMAID = "@mermaid-js/tiny/-/tiny-12.0.0.tgz"
MERMAID_SHA512 = "ZW9YXy+3tSLPscBT+NnQO0K0qYH7BGES5nExl6Snoygey7xd2N0cO7Nq30N5k/u7gIeYoCrldyVy+VTCMWrNDQ=="

#: Code, which stays as it is, or a link.
LINK = re.compile(
    r"(?P<code>^```.*?^```|`[^`\n]*`)|\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)", re.DOTALL | re.MULTILINE
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make docs", description=__doc__)
    parser.add_argument("--pictures", action="store_true", help="take pictures of the web page, if there is a browser")
    has_pictures = parser.parse_args(arguments).pictures
    if has_pictures:
        # Another process, because wheels are built where there is no Playwright.
        subprocess.run([sys.executable, "-m", "scripts.take_pictures"], cwd=ROOT, check=True)
    stage(has_pictures, load_mermaid(ROOT / "build" / f"mermaid-{Path(MERMAID).stem}.js"))
    # A build that was killed leaves a cache in which pages are missing.
    for made in (SITE, ROOT / ".cache"):
        shutil.rmtree(made, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        words = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        print(words.partition("Traceback")[0] or words, file=sys.stderr)
        return 1
    for page in STAGE.rglob("*.md"):
        shutil.copy(page, SITE / page.relative_to(STAGE))
    settings = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    (SITE / "llms.txt").write_text(render_llms(settings))
    print(f"{SITE.relative_to(ROOT)}/index.html")
    return 0


def stage(has_pictures: bool, mermaid: bytes) -> None:
    """Put everything that the site is made of into one folder."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(DOCS, STAGE, ignore=shutil.ignore_patterns("*.md", OVERRIDES.name))
    if has_pictures and PICTURES.exists():
        shutil.copytree(PICTURES, STAGE / "assets" / PICTURES.name)
    for source in DOCS.rglob("*.md"):
        write_page(STAGE / source.relative_to(DOCS), source, source.read_text())
    for name, target in ELSEWHERE.items():
        write_page(STAGE / target, ROOT / name, (ROOT / name).read_text())
    for name, render in REFERENCES.items():
        write_page(STAGE / "reference" / name, DOCS / "reference" / name, render())
    (STAGE / "assets" / "mermaid.js").write_bytes(mermaid)


def write_page(target: Path, source: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(move_links(text, source, target))


def move_links(text: str, source: Path, target: Path) -> str:
    """The text of a page whose links hold at its place in the site."""

    def moved(found: re.Match[str]) -> str:
        if found["code"] or "://" in found["target"] or found["target"].startswith(("#", "mailto:")):
            return found[0]
        path, mark, anchor = found["target"].partition("#")
        file = (source.parent / path).resolve()
        if not file.exists() and not file.is_relative_to(DOCS):
            raise SystemExit(f"{source.relative_to(ROOT)}: the link {found['target']} leads nowhere")
        if (place := place_of(file)) is None:
            return found["text"]
        return f"[{found['text']}]({os.path.relpath(place, target.parent)}{mark}{anchor})"

    return LINK.sub(moved, text)


def place_of(path: Path) -> Path | None:
    """Where a file of the repository is in the site; None for a folder, which no browser can show."""
    if path.is_relative_to(DOCS):
        return STAGE / path.relative_to(DOCS)
    name = path.relative_to(ROOT)
    if place := ELSEWHERE.get(str(name)):
        return STAGE / place
    if path.is_dir():
        return None
    copy = STAGE / "files" / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, copy)
    return copy


def load_mermaid(kept: Path) -> bytes:
    """Mermaid's program, fetched once per checkout."""
    if kept.exists():
        return kept.read_bytes()
    registry = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org/").rstrip("/")
    address = f"{registry}/{MERMAID}"
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    try:
        with urllib.request.urlopen(address, context=ssl.create_default_context(cafile=certificates)) as answer:
            archive: bytes = answer.read()
    except OSError as error:
        hint = "If this machine reaches npm packages through a mirror, set NPM_CONFIG_REGISTRY to its address."
        raise SystemExit(f"could not fetch {address}, which draws the diagrams: {error}\n{hint}") from None
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != MERMAID_SHA512:
        raise SystemExit(f"{address} is not the Mermaid that scripts/build_docs.py names: its hash differs")
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        license_text, code = (read_member(package, name) for name in ("LICENSE", "dist/mermaid.tiny.js"))
    program = b"/*!\n%s\n*/\n%s" % (license_text, code)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(program)
    return program


def read_member(package: tarfile.TarFile, name: str) -> bytes:
    member = package.extractfile(f"package/{name}")
    if member is None:
        raise SystemExit(f"{MERMAID} has no file {name}")
    return member.read()


def render_llms(settings: dict[str, Any]) -> str:
    """The site's pages for an agent (llmstxt.org): every page of the navigation, as Markdown."""
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}", ""]
    for entry in settings["nav"]:
        ((title, pages),) = entry.items()
        lines += [f"## {title}", "", *list_pages(entry if isinstance(pages, str) else pages), ""]
    return "\n".join(lines)


def list_pages(entries: Any) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else [entries]:
        ((title, page),) = entry.items()
        if isinstance(page, list):
            yield from list_pages(page)
        else:
            yield f"- [{title}]({page}): {summarize((STAGE / page).read_text())}"


def summarize(text: str) -> str:
    """The first sentence of a page."""
    plain = re.sub(r"\A---\n.*?^---\n|<!--.*?-->|^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    paragraphs = [one for one in plain.split("\n\n") if re.match(r"\s*[\w*`\[]", one)]
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraphs[0].split())) if paragraphs else ""
    return re.split(r"(?<=\.) ", words)[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
