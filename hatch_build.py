"""Makes what a wheel carries and the repository does not: the tables of the command line and the documentation.

Hatchling calls it for every wheel and source distribution. A source distribution holds both already, so a wheel made
from one needs nothing more. An editable installation gets the tables only; `make docs` builds the documentation.
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


class CustomBuildHook(BuildHookInterface):
    def dependencies(self) -> list[str]:
        """What the generators import and the documentation is built with."""
        if self._is_unpacked():
            return []
        settings = tomllib.loads(Path(self.root, "pyproject.toml").read_text())
        return [*settings["project"]["dependencies"], *settings["dependency-groups"]["docs"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._is_unpacked():
            self._run("fairlead.cli.generate")
        if version == "editable":
            return
        if not self._is_unpacked():
            self._run("scripts.build_docs")
        is_wheel = self.target_name == "wheel"
        build_data["artifacts"] += [f"/{path}" for path in TABLES]
        build_data["force_include"][str(Path(self.root, SITE))] = "fairlead/site" if is_wheel else SITE

    def _is_unpacked(self) -> bool:
        """Whether this is a source distribution and not a checkout."""
        return Path(self.root, "PKG-INFO").exists()

    def _run(self, module: str) -> None:
        # pip hands over its environment for the build in PYTHONPATH.
        paths = [str(Path(self.root, "src")), self.root, os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        subprocess.run([sys.executable, "-m", module], cwd=self.root, env=environment, check=True)
