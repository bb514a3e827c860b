"""Makes what a wheel carries and the repository does not: tables of the command line, the documentation and the page.

Hatchling calls it for every wheel and source distribution. A source distribution holds them already, so a wheel made
from one needs nothing more. An editable installation gets the tables only; `make docs` and `make web` build the others.
FAIRLEAD_PAGE=no leaves the page out: tests that build wheels for other reasons need no Node.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TABLES = ("src/fairlead/cli/generated", "src/fairlead/client/kinds.json", "src/fairlead/client/specs.py")
SITE = "site"
PAGE = "src/fairlead/web"


class CustomBuildHook(BuildHookInterface):
    def dependencies(self) -> list[str]:
        """What the generators import and the documentation is built with."""
        if self._is_unpacked():
            return []
        settings = tomllib.loads(Path(self.root, "pyproject.toml").read_text())
        groups = settings["dependency-groups"]
        return [*settings["project"]["dependencies"], *groups["docs"], *(groups["web"] if self._has_page() else ())]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._is_unpacked():
            self._run("fairlead.cli.generate")
        if version == "editable":
            return
        if not self._is_unpacked():
            self._run("scripts.build_docs")
            if self._has_page():
                self._run("scripts.build_web")
        is_wheel = self.target_name == "wheel"
        build_data["artifacts"] += [f"/{path}" for path in (*TABLES, PAGE)]
        build_data["force_include"][str(Path(self.root, SITE))] = "fairlead/site" if is_wheel else SITE

    def _is_unpacked(self) -> bool:
        """Whether this is a source distribution and not a checkout."""
        return Path(self.root, "PKG-INFO").exists()

    def _has_page(self) -> bool:
        return os.environ.get("FAIRLEAD_PAGE") != "no"

    def _run(self, module: str) -> None:
        # pip hands over its environment for the build in PYTHONPATH.
        paths = [str(Path(self.root, "src")), self.root, os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        subprocess.run([sys.executable, "-m", module], cwd=self.root, env=environment, check=True)
