"""A pod's image run by podman, docker or containerd: the command and the container that the supervisor runs.

The runtime's own command is what the supervisor runs and watches; the fields of the pod become its options. Values of
variables and credentials go through files, never through arguments that everybody can read. What is refused before a
start is in `review.py`, what the supervisor does in `supervisor/container.py` and `storage/staging.py`.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead.engines.local.launch_order import CommandLine, ContainerRun, MountPlan, Volume
from fairlead.engines.local.linux import procfs
from fairlead.engines.local.plan.environment import PATH, expand
from fairlead.engines.local.plan.identity import PodRights, ServerRights
from fairlead.engines.local.plan.limits import decide_pids
from fairlead.engines.local.plan.volumes import PERSONAL_HOME, Volumes, can_be_made
from fairlead.engines.local.settings import LocalSettings
from fairlead.engines.local.wire import HOST_NETWORK
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import ContainerSecurity
from fairlead.model.pods.podset import PodContainer, PodSpec

HOST = "host"
ANNOTATION = "fairlead/runtime"
#: In shared mode root in a container is nobody on this machine: ids from here on are its.
FIRST_ID, IDS = 100_000, 65_536
ARCHIVE = re.compile(r"(docker-archive|oci-archive|oci|dir):(?P<path>[^:]+)")
#: Files for the runtime: variables and credentials.
_VARIABLES, _REGISTRIES = "variables", "config.json"
#: Folders that images have, and that may hold more than one would copy.
_IN_EVERY_IMAGE = re.compile("/(bin|boot|etc|home|lib|lib64|media|mnt|opt|root|run|sbin|srv|tmp|usr|var)?/?|/usr/.*")
#: What the host runtime gives every process and an image gives itself.
_IMAGE_OWN = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM"})
#: Variables that a runtime, its helpers or the system's loader go by, in a process that may be root.
_HEEDED = re.compile(
    "PATH|HOME|USER|SHELL|TERM|LANG|LANGUAGE|LC_.*|TZ.*|TMP|TEMP|TMPDIR|IFS|ENV|BASH_.*|NLSPATH|LOCPATH|HOSTALIASES"
    "|LD_.*|GLIBC_.*|MALLOC_.*|GCONV_PATH|RES_OPTIONS|LOCALDOMAIN|GETCONF_DIR|PYTHON.*|GO.*|SSL_.*|.*_PROXY|XDG_.*"
    "|DBUS_.*|_?CONTAINERS?_.*|_?CONTAINERD_.*|PODMAN_.*|DOCKER_.*|BUILDAH_.*|BUILDKIT_.*|NERDCTL_.*|STORAGE_.*"
    "|REGISTR.*|CNI_.*|NETAVARK_.*|NETNS.*|AARDVARK_.*|_?RUNC_.*|_?LIBCONTAINER_.*|_?OCI_.*|CONMON_.*|CRIU_.*|RUST_.*"
    "|NOTIFY_SOCKET|LISTEN_.*|WATCHDOG_.*|INVOCATION_ID|JOURNAL_STREAM|CGROUP.*|GPG.*|GNUPGHOME|AWS_.*|FAIRLEAD_.*"
    "|NETCONFPATH|IPFS_PATH|OPENSSL_.*|SSH_.*|OTEL_.*|XTABLES_.*|KRB5.*|LIBMOUNT_.*|SYSTEMD_.*|ROOTLESSKIT_.*|LOGNAME",
    re.IGNORECASE,
)


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """A program that runs images."""

    program: str
    #: Before the verb.
    options: tuple[str, ...] = ()
    #: Whether its command runs containers itself; others ask an engine, which sees the machine as it is.
    is_direct: bool = False
    #: The option that names the file to which it writes as soon as the container is made.
    sign: str = "--cidfile"


RUNTIMES = {
    # Debian's default runtime does not start on machines with the older control groups; runc does.
    "podman": Runtime(
        program="podman",
        options=("--runtime=runc", "--cgroup-manager=cgroupfs"),
        is_direct=True,
        sign="--pidfile",
    ),
    "docker": Runtime(program="docker"),
    "containerd": Runtime(program="nerdctl", sign="--pidfile"),
}


def choose(container: PodContainer, settings: LocalSettings) -> str:
    """The runtime's name: the workload's annotation if the operator offers that runtime, else the server's first."""
    annotations = container.fields.annotations
    name = next((annotation.value or "" for annotation in annotations if annotation.name == ANNOTATION), "")
    if name and name not in settings.runtimes:
        raise Refused(f"this server has no runtime '{name}'; it has {', '.join(settings.runtimes)}")
    return name or settings.runtimes[0]


class ContainerContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a container is put into: the attempt's own folder, the server's, its volumes."""

    private: str
    data: str
    volumes: Volumes


def can_stage(name: str) -> bool:
    """Whether volumes of every kind can be prepared for it in a view of its own: as root, without an engine."""
    return name == HOST or (RUNTIMES[name].is_direct and os.geteuid() == 0)


def is_mapped(name: str, rights: ServerRights) -> bool:
    """Whether root in the container is nobody on this machine."""
    return RUNTIMES[name].is_direct and rights.is_shared and rights.has_root and not rights.settings.allowed.root_user


def decide_ids(name: str, granted: PodRights, rights: ServerRights, security: ContainerSecurity) -> tuple[int, int]:
    """User and group of the container's process as this machine numbers them; an image's own user is taken for root."""
    chosen = security.uid_gid_source in ("custom", "fromIdpToken")
    uid, gid = (granted.user.uid, granted.user.gid) if chosen else (0, 0)
    shift = FIRST_ID if is_mapped(name, rights) else 0
    return uid + shift, gid + shift


def render_surroundings(rights: ServerRights) -> dict[str, str]:
    """The environment of the runtime's own command."""
    home = rights.user.home if rights.settings.is_personal else "/"
    return {"PATH": PATH, "HOME": home, **dict(rights.settings.runtime_environment)}


def render(
    name: str,
    pod: PodSpec,
    granted: PodRights,
    rights: ServerRights,
    environment: Mapping[str, str],
    context: ContainerContext,
) -> tuple[CommandLine, ContainerRun]:
    """The runtime's command and the container of a pod that runs with the runtime `name`."""
    runtime = RUNTIMES[name]
    container = f"fairlead-{pod.pod_id}.{pod.attempt}"
    program = dict(rights.settings.runtime_programs).get(name, runtime.program)
    start = [program, *runtime.options, *rights.settings.runtime_options]
    folder = f"{context.private}/container"
    variables = _choose_variables(pod, environment)
    lines = {key: value for key, value in variables.items() if "\n" in value}
    files = _render_files({key: value for key, value in variables.items() if key not in lines}, context.volumes)
    surroundings = render_surroundings(rights)
    if _REGISTRIES in files:
        surroundings |= {"REGISTRY_AUTH_FILE": f"{folder}/{_REGISTRIES}", "DOCKER_CONFIG": folder}
    arguments = expand(pod.container.command + pod.container.args, environment)
    entry = [f"--entrypoint={arguments.pop(0)}"] if pod.container.command else []
    uid, gid = decide_ids(name, granted, rights, pod.container.fields.security)
    volumes, mounts = render_mounts(context.volumes.mounts, folder, staged=can_stage(name))
    # Where there is a limit, the container stays until it was asked whether it went over it.
    leaves = pod.container.memory_limit_bytes is None
    sign = f"{context.private}/sign"
    options = [f"--name={container}", f"{runtime.sign}={sign}/made", f"--env-file={folder}/{_VARIABLES}"]
    options += [*_name_lines(name, lines), *mounts, *(["--rm"] if leaves else [])]
    options += _render_options(name, pod, granted, rights)
    options += _render_working_dir(runtime, pod.container.working_dir, context.volumes, granted.read_only_root)
    command = CommandLine(
        argv=[*start, "run", *options, *entry, pod.container.image, *arguments],
        env=surroundings | lines | {procfs.MARKER: environment[procfs.MARKER]},
        cwd="/",
    )
    # Root of a user namespace of its own may not set up a network that belongs to another.
    enters_network = is_mapped(name, rights)
    find_image, pull = _render_pull(start, pod.container) if enters_network else ([], [])
    return command, ContainerRun(
        name=container,
        image=pod.container.image,
        folder=folder,
        sign=sign,
        making=f"{name} pulls the image {pod.container.image} if it is missing, and creates the container",
        mounts=MountPlan(volumes, uid, gid, os.path.realpath(context.data)),
        files=files,
        staged=can_stage(name),
        exec=[*start, "exec", "--interactive"],
        inspect=[*start, "inspect", "--format={{.State.OOMKilled}}", container],
        remove=[*start, "rm", "--force", "--volumes", container],
        load=None if runtime.is_direct else _render_load(start, pod.container.image),
        enters_network=enters_network,
        find_image=find_image,
        pull=pull,
        memory_limit=pod.container.memory_limit_bytes,
        leaves=leaves,
    )


def _render_files(variables: Mapping[str, str], volumes: Volumes) -> dict[str, str]:
    """The files that the runtime's command reads: variables, and the credentials of registries if there are any."""
    files = {_VARIABLES: "".join(f"{key}={value}\n" for key, value in variables.items())}
    if volumes.registries:
        files[_REGISTRIES] = merge_registries(volumes.registries)
    return files


def _render_load(start: list[str], image: str) -> list[str] | None:
    """How an engine loads an image that lies in a file; None if it is given a name."""
    archive = ARCHIVE.match(image)
    return [*start, "load", f"--input={archive['path']}"] if archive else None


def _render_pull(start: list[str], container: PodContainer) -> tuple[list[str], list[str]]:
    """How the image is looked up, empty if it is pulled always, and how it is pulled, empty if it never is."""
    policy = _pull(container)
    if policy == "never" or ARCHIVE.match(container.image):
        return [], []
    find = [] if policy == "always" else [*start, "images", "--quiet", container.image]
    return find, [*start, "pull", "--quiet", container.image]


def _choose_variables(pod: PodSpec, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the container gets beside those of its image."""
    given = {variable.name for variable in pod.container.environment}
    variables = {key: value for key, value in environment.items() if key not in _IMAGE_OWN or key in given}
    if pod.container.fields.create_home_dir:
        variables.setdefault("HOME", PERSONAL_HOME)
    return variables


def _name_lines(name: str, lines: Mapping[str, str]) -> list[str]:
    """Variables of several lines, which no file of variables can hold: the runtime takes them from its own environment.

    There they must not change what the runtime itself does.
    """
    for key in lines:
        if _HEEDED.fullmatch(key):
            raise Refused(
                f"environment variable {key} has several lines, and {name} itself would obey it; "
                "give it another name, or mount the text as a file of a secret or a config map"
            )
    return [f"--env={key}" for key in lines]


def _render_options(name: str, pod: PodSpec, granted: PodRights, rights: ServerRights) -> list[str]:
    container, fields = pod.container, pod.container.fields
    security = fields.security
    means = rights.means
    # Given as numbers: a runtime's own default may be more than this server itself may have.
    bounds = (("nofile", means.files), ("nproc", means.processes))
    options = [f"--ulimit={kind}={maximum}:{maximum}" for kind, maximum in bounds]
    options += [HOST_NETWORK, f"--pull={_pull(container)}", *_render_security(name, security, granted, rights)]
    if name != "docker":
        # Messages about the pull are not output of the pod; older Docker does not know the option.
        options.append("--quiet")
    if name == "podman":
        # The proxy for pulls is not for the pod.
        options.append("--http-proxy=false")
    if container.tty:
        options.append("--tty")
    if container.stdin or pod.has_caller_environment:
        options.append("--interactive")
    if container.cpu_limit_milli is not None:
        options.append(f"--cpus={container.cpu_limit_milli / 1000:g}")
    if container.memory_limit_bytes is not None:
        options.append(f"--memory={container.memory_limit_bytes}")
    if rights.has_root:
        options.append(f"--pids-limit={decide_pids(rights.settings.pids_limit, rights.is_shared, means) or -1}")
    if fields.compute.large_shm_request and not security.host_ipc:
        # 0 is no limit but the machine's memory; on a cluster the pod's own limit is the only one.
        options.append(f"--shm-size={container.memory_limit_bytes or 0}")
    return options


def _render_working_dir(runtime: Runtime, directory: str, volumes: Volumes, read_only: bool) -> list[str]:
    """Where it starts. An engine makes a folder that its image lacks; the others refuse to, but make volumes.

    A volume without a name starts with what the image has there, belongs to the user, and goes with the container.
    """
    options = [f"--workdir={directory}"] if directory else []
    is_usual = _IN_EVERY_IMAGE.fullmatch(directory) or any(sign in directory for sign in ',"')
    if runtime.is_direct and not is_usual and can_be_made(directory, volumes.mounts):
        options.append(f"--mount=type=volume,destination={directory}{',ro=true' if read_only else ''}")
    return options


def _render_security(name: str, security: ContainerSecurity, granted: PodRights, rights: ServerRights) -> list[str]:
    options = []
    if security.uid_gid_source in ("custom", "fromIdpToken"):
        options.append(f"--user={granted.user.uid}:{granted.user.gid}")
        options += [f"--group-add={gid}" for gid in granted.user.groups]
    if security.drop_all_capabilities:
        options.append("--cap-drop=ALL")
    options += [f"--cap-add={capability}" for capability in sorted(granted.added)]
    if granted.no_new_privileges:
        options.append("--security-opt=no-new-privileges")
    if security.seccomp_profile_type == "Unconfined":
        options.append("--security-opt=seccomp=unconfined")
    if security.host_ipc:
        options.append("--ipc=host")
    if granted.read_only_root:
        options += ["--read-only", *(["--read-only-tmpfs=false"] if name == "podman" else [])]
    if is_mapped(name, rights):
        options += [f"--{kind}map=0:{FIRST_ID}:{IDS}" for kind in ("uid", "gid")]
    return options


def _pull(container: PodContainer) -> str:
    """As Kubernetes: always for `latest`; an image on this machine is never pulled."""
    policy = container.fields.image_pull_policy
    if policy:
        return {"Always": "always", "Never": "never", "IfNotPresent": "missing"}[policy]
    image = container.image
    if image.startswith("localhost/") or ARCHIVE.match(image):
        return "missing"
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return "always" if tag in ("", "latest") and "@" not in image else "missing"


# Volumes and credentials as a runtime takes them


def render_mounts(volumes: Sequence[Volume], folder: str, *, staged: bool) -> tuple[list[Volume], list[str]]:
    """The volumes, each with its place, and the options that name them to the runtime.

    If they are staged, every volume is mounted at a place of the attempt's own folder first, and the runtime binds
    that; otherwise it binds the paths themselves.
    """
    placed, options = [], []
    # Outer ones first, as the runtime mounts them in this order.
    for number, volume in enumerate(sorted(volumes, key=lambda volume: volume.at)):
        if volume.kind == "memory" and not volume.files:
            options.append(_render_memory(volume))
            continue
        mount_source = f"{folder}/volume{number}" if staged else volume.source
        placed.append(volume._replace(place=mount_source))
        options.append(_render_bind(volume, mount_source))
    return placed, options


def _render_bind(volume: Volume, mount_source: str) -> str:
    ways = ["ro" if volume.read_only else "rw", "rslave" if volume.follows else "rprivate"]
    return f"--volume={mount_source}:{volume.at}:{','.join(ways)}"


def _render_memory(volume: Volume) -> str:
    size = [f"tmpfs-size={volume.size}"] if volume.size is not None else []
    return "--mount=" + ",".join(["type=tmpfs", f"destination={volume.at}", f"tmpfs-mode={volume.mode:o}", *size])


def merge_registries(texts: Iterable[str]) -> str:
    """One configuration out of several; of two for the same registry the later one counts."""
    merged: dict[str, object] = {}
    for text in texts:
        try:
            merged |= json.loads(text)["auths"]
        except (ValueError, KeyError, TypeError):
            raise Refused("imagePullSecrets: a secret does not hold the configuration of a registry") from None
    return json.dumps({"auths": merged})
