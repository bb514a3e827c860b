"""A pod's image run for real: the order that starts it with podman, docker or containerd instead of the process alone.

Pure. The runtime's own command is what the supervisor runs and watches; the fields of the pod become its options.
Values of variables go through a file, never through arguments that everybody can read.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.engines.local import procfs
from fairlead.engines.local.environment import PATH
from fairlead.engines.local.identity import PodRights, Rights
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.podset import Container, PodSpec

Note = tuple[str, str]
HOST = "host"
ANNOTATION = "fairlead/runtime"
#: In shared mode root in a container is nobody on this machine: ids from here on are its.
_FIRST_ID, _IDS = 100_000, 65_536
_ARCHIVE = re.compile(r"(docker-archive|oci-archive|oci|dir):(?P<path>[^:]+)")
#: What the host runtime gives every process and an image gives itself.
_IMAGE_OWN = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM"})


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """A program that runs images."""

    program: str
    #: Before the verb.
    options: tuple[str, ...] = ()


RUNTIMES = {
    # Debian's default runtime does not start on machines with the older control groups; runc does.
    "podman": Runtime(program="podman", options=("--runtime=runc", "--cgroup-manager=cgroupfs")),
    "docker": Runtime(program="docker"),
    "containerd": Runtime(program="nerdctl"),
}


def choose(container: Container, settings: LocalSettings) -> str:
    """The runtime's name: the workload's annotation where the operator offers that runtime, else the server's first."""
    given = container.fields.get("annotations") or ()
    items = given.items() if isinstance(given, Mapping) else ((each.get("name"), each.get("value")) for each in given)
    asked = next((str(value) for name, value in items if name == ANNOTATION), "")
    if asked and asked not in settings.runtimes:
        raise Refused(f"runtime '{asked}' is not offered here; there are {', '.join(settings.runtimes)}")
    return asked or settings.runtimes[0]


def refusals(container: Container, rights: Rights) -> list[Note]:
    """Fields that cannot be provided in a container here, each with the reason."""
    fields, notes = container.fields, []
    security = fields.get("security") or {}
    for name, value in (fields.get("storage") or {}).items():
        if value:
            notes.append((f"storage.{name}", "volumes are not mounted into containers yet; use the host runtime"))
    given = (name for name in ("ports", "exposedUrls", "imagePullSecrets") if fields.get(name))
    notes += [(name, "containers do not get it yet; use the host runtime") for name in given]
    if (fields.get("probes") or {}).get("readiness"):
        notes.append(("probes.readiness", "containers are not probed yet; use the host runtime"))
    if fields.get("createHomeDir"):
        notes.append(("createHomeDir", "containers do not get a home yet; use the host runtime"))
    if security.get("runAsNonRoot") and security.get("uidGidSource") != "custom":
        notes.append(("security.runAsNonRoot", "the image's user is not known before the start; give runAsUid"))
    archive = _ARCHIVE.match(container.image)
    if archive and rights.is_shared and not _is_allowed(archive["path"], rights.settings.allowed.host_paths):
        notes.append(("image", "the archive lies outside the folders that --allow host-path names"))
    if not container.image:
        notes.append(("image", "a container needs one"))
    return notes


def remarks(container: Container) -> list[Note]:
    """Fields that have less effect in a container here."""
    if not (container.fields.get("compute") or {}).get("gpuDevicesRequest"):
        return []
    return [("compute.gpuDevicesRequest", "the devices are named to the runtime, which must be set up to hand them in")]


def _is_allowed(path: str, folders: tuple[str, ...]) -> bool:
    parts = path.split("/")
    return ".." not in parts and any(f"{path}/".startswith(folder.rstrip("/") + "/") for folder in folders)


def render(
    name: str, pod: PodSpec, granted: PodRights, rights: Rights, environment: Mapping[str, str], file: str
) -> dict[str, Any]:
    """What differs in the order of a pod that runs in a container of the runtime `name`; `file` takes the variables."""
    runtime = RUNTIMES[name]
    container = f"fairlead-{pod.pod_id}.{pod.attempt}"
    start = [runtime.program, *runtime.options, *rights.settings.runtime_options]
    given = {variable.name for variable in pod.container.environment}
    variables = {key: value for key, value in environment.items() if key not in _IMAGE_OWN or key in given}
    broken = [key for key, value in variables.items() if "\n" in value]
    if broken:
        raise Refused(f"environment variable {broken[0]} has several lines, which {name} does not take")
    words = [*pod.container.command, *pod.container.args]
    entry = [f"--entrypoint={words.pop(0)}"] if pod.container.command else []
    options = [f"--name={container}", f"--env-file={file}", *_render_options(name, pod, granted, rights)]
    home = rights.user.home if rights.settings.is_personal else "/"
    return {
        "argv": [*start, "run", *options, *entry, pod.container.image, *words],
        "env": {"PATH": PATH, "HOME": home, procfs.MARKER: environment[procfs.MARKER]},
        "cwd": "/",
        "makes_cwd": False,
        "isolation": None,
        "container": {
            "name": container,
            "exec": [*start, "exec", "--interactive"],
            "file": file,
            "memory_limit": pod.container.memory_limit_bytes,
            "lines": [f"{key}={value}" for key, value in variables.items()],
            "inspect": [*start, "inspect", "--format={{.State.OOMKilled}}", container],
            "remove": [*start, "rm", "--force", container],
        },
        **_NOTHING_ELSE,
    }


#: The runtime does all this; its own command runs as the server does.
_NOTHING_ELSE: dict[str, Any] = {
    "groups": None,
    "memory_limit": None,
    "affinity": None,
    "priority": None,
    "uid": None,
    "gid": None,
    "user_groups": [],
    "bounding": None,
    "ambient": [],
    "added": [],
    "no_new_privileges": False,
    "filtered": False,
    "own_processes": False,
    "own_ipc": False,
    "guard_knobs": False,
}


def _render_options(name: str, pod: PodSpec, granted: PodRights, rights: Rights) -> list[str]:
    container, fields = pod.container, pod.container.fields
    security = fields.get("security") or {}
    means = rights.means
    # Said by number: a runtime's own default may be more than this server could have itself.
    bounds = (("nofile", means.files), ("nproc", means.processes))
    options = [f"--ulimit={kind}={most}:{most}" for kind, most in bounds]
    options += ["--network=host", f"--pull={_pull(container)}", *_render_security(name, security, granted, rights)]
    if name == "podman":
        options.append("--quiet")  # what it says while it pulls is no output of the pod
    if container.tty:
        options.append("--tty")
    if container.stdin:
        options.append("--interactive")
    if container.working_dir:
        options.append(f"--workdir={container.working_dir}")
    if container.cpu_limit_milli is not None:
        options.append(f"--cpus={container.cpu_limit_milli / 1000:g}")
    if container.memory_limit_bytes is not None:
        options.append(f"--memory={container.memory_limit_bytes}")
    if (fields.get("compute") or {}).get("largeShmRequest") and not security.get("hostIpc"):
        # 0 is no bound but the machine's memory, as it has none on a cluster but the pod's.
        options.append(f"--shm-size={container.memory_limit_bytes or 0}")
    return options


def _render_security(name: str, security: Mapping[str, Any], granted: PodRights, rights: Rights) -> list[str]:
    options = []
    if security.get("uidGidSource") in ("custom", "fromIdpToken"):
        options.append(f"--user={granted.user.uid}:{granted.user.gid}")
        options += [f"--group-add={gid}" for gid in granted.user.groups]
    if security.get("dropAllCapabilities"):
        options.append("--cap-drop=ALL")
    options += [f"--cap-add={capability}" for capability in sorted(granted.added)]
    if granted.no_new_privileges:
        options.append("--security-opt=no-new-privileges")
    if security.get("seccompProfileType") == "Unconfined":
        options.append("--security-opt=seccomp=unconfined")
    if security.get("hostIpc"):
        options.append("--ipc=host")
    if granted.read_only_root:
        options += ["--read-only", *(["--read-only-tmpfs=false"] if name == "podman" else [])]
    if name == "podman" and rights.is_shared and rights.has_root and not rights.settings.allowed.root_user:
        options += [f"--{kind}map=0:{_FIRST_ID}:{_IDS}" for kind in ("uid", "gid")]
    return options


def _pull(container: Container) -> str:
    """As Kubernetes: always for `latest`; what lies on this machine is never looked for elsewhere."""
    asked = container.fields.get("imagePullPolicy")
    if asked:
        return {"Always": "always", "Never": "never", "IfNotPresent": "missing"}[asked]
    image = container.image
    if image.startswith("localhost/") or _ARCHIVE.match(image):
        return "missing"
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return "always" if tag in ("", "latest") and "@" not in image else "missing"
