"""Builds nerdctl, the command that speaks to containerd, from its Go module into a folder. For `make test-containerd`.

The module's own list of checksums says what its parts must be; that of the module itself stands here.
"""

import json
import sys
import tempfile
from pathlib import Path

from deploy.cluster.build import find_go, run_go

MODULE, VERSION = "github.com/containerd/nerdctl/v2", "v2.1.2"
SUMS = f"""\
{MODULE} {VERSION} h1:ykM+PtsTUWplav2vmf/YxyMwiAdEsaLM0FgkM4d95+c=
{MODULE} {VERSION}/go.mod h1:yMsrdkIWe73vaknK5vOPLHxo57Up1w48061VwxAde8s=
"""


def build(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    go = find_go()
    with tempfile.TemporaryDirectory() as work:
        # It requires nothing: only this one module is fetched, and its own list says the rest.
        (Path(work) / "go.mod").write_text("module build\n\ngo 1.24\n")
        (Path(work) / "go.sum").write_text(SUMS)
        fetched = json.loads(run_go(go, "mod", "download", "-json", f"{MODULE}@{VERSION}", at=Path(work)))
    # The module cache is read-only; what is built goes elsewhere.
    run_go(go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(place / "nerdctl"), "./cmd/nerdctl", at=fetched["Dir"])


if __name__ == "__main__":
    build(Path(sys.argv[1]))
