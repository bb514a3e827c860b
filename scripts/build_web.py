"""`make web`: the page of web/, built into src/fairlead/web, unless it is built from the same files already.

The types of the API are generated from the server's own description before TypeScript checks the page, so a changed
contract that the page does not follow fails the build. Node and npm come from the wheel of the group `web`.
"""

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from fairlead.control.assets.kinds import ASSET_KINDS, AssetKind
from fairlead.formats.forms import render_fields, render_form
from fairlead.kinds import KINDS
from fairlead.model.priority import PRIORITIES
from scripts.generate_docs import load_description

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
GENERATED = WEB / "src" / "generated"
TARGET = ROOT / "src" / "fairlead" / "web"
#: Says what the page was built from.
STAMP = TARGET / "inputs.txt"
#: Says which packages are installed.
INSTALLED = WEB / "node_modules" / ".installed"
#: What the page needs to know of a kind of workloads.
KIND_MEMBERS = ("title", "rest", "noun", "canSuspend", "canChange")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make web", description=__doc__)
    parser.add_argument("--check", action="store_true", help="also lint the page and run its unit tests")
    options = parser.parse_args(arguments)
    generated = generate()
    inputs = digest(generated)
    if not options.check and STAMP.exists() and STAMP.read_text() == inputs:
        return 0
    install()
    write_generated(generated)
    if options.check:
        run_tool("eslint/bin/eslint.js", "checking the style", ".", "--max-warnings", "0")
        run_tool("vitest/vitest.mjs", "running the unit tests", "run")
    run_tool("typescript/bin/tsc", "checking the types", "--noEmit")
    run_tool("vite/bin/vite.js", "building the page", "build", "--logLevel", "warn")
    STAMP.write_text(inputs)
    return 0


def generate() -> dict[str, str]:
    """The files that come from the server's declarations, by name."""
    kinds = json.loads((ROOT / "src" / "fairlead" / "client" / "kinds.json").read_text())
    with_yaml = {kind.rest for kind in KINDS.values() if kind.letter}
    chosen = [{name: kind[name] for name in KIND_MEMBERS} | {"hasYaml": kind["rest"] in with_yaml} for kind in kinds]
    return {
        "openapi.json": json.dumps(asyncio.run(load_description()), indent=1),
        "kinds.json": json.dumps(chosen, indent=1),
        "priorities.json": json.dumps(PRIORITIES, indent=1),
        "assets.json": json.dumps([render_asset_form(kind) for kind in ASSET_KINDS], indent=1),
        **{f"forms/{kind.rest}.json": json.dumps(render_form(kind)) for kind in KINDS.values()},
    }


def render_asset_form(kind: AssetKind) -> dict[str, object]:
    """A kind of assets: its names, what roles call it, and its fields."""
    names = {"path": kind.path, "kind": kind.kind, "title": kind.title, "member": kind.member}
    return {**names, "resource": kind.resource, "fields": render_fields(kind.spec)}


def write_generated(generated: dict[str, str]) -> None:
    (GENERATED / "forms").mkdir(parents=True, exist_ok=True)
    for name, text in generated.items():
        (GENERATED / name).write_text(text)
    tool, source, target = "openapi-typescript/bin/cli.js", "src/generated/openapi.json", "src/generated/schema.d.ts"
    # The server leaves out what has its default.
    words = (source, "--output", target, "--default-non-nullable", "false")
    run_tool(tool, "generating the types of the API", *words)


def digest(generated: dict[str, str]) -> str:
    """What the page is made of, as one number."""
    found = hashlib.sha256(json.dumps(generated).encode())
    skipped = ("node_modules", "generated")
    for path in sorted(WEB.rglob("*")):
        if path.is_file() and not any(part in skipped for part in path.relative_to(WEB).parts):
            found.update(f"{path.relative_to(WEB)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def install() -> None:
    """The packages that the lock file pins, unless they are there already."""
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if INSTALLED.exists() and INSTALLED.read_text() == wanted:
        return
    say("installing the packages of web/package-lock.json")
    run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error")
    INSTALLED.write_text(wanted)


def run_tool(script: str, what: str, *words: str) -> None:
    say(what)
    run("node", f"node_modules/{script}", *words)


def run(program: str, *words: str) -> None:
    """Run a program of the group's Node; its own words say what went wrong."""
    folder = Path(sysconfig.get_path("scripts"))
    environment = {**os.environ, "PATH": os.pathsep.join((str(folder), os.environ.get("PATH", "")))}
    done = subprocess.run([folder / program, *words], cwd=WEB, env=environment, stdout=sys.stderr)
    if done.returncode:
        raise SystemExit(f"web: {program} {words[0]} failed with {done.returncode}")


def say(text: str) -> None:
    print(f"web: {text} …", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
