"""From a pod's spec to the order that its supervisor carries out: command, identity, places, limits.

Called by the engine, which adds what it alone knows: the pod's network, its ports, its claims. It reads nothing of the
machine but the real path of the data folder.
"""

import os
import posixpath
from collections.abc import Sequence

import msgspec

from fairlead.engines.local.attempts import AttemptFolders, Key
from fairlead.engines.local.launch_order import (
    AttemptPlace,
    CommandLine,
    ContainerRun,
    FetchPlan,
    IsolationPlan,
    LaunchOrder,
    MountPlan,
    ProcessLimits,
    ProcessRights,
    ReadinessCheck,
    Volume,
)
from fairlead.engines.local.linux import capabilities
from fairlead.engines.local.network.ports import owner_of
from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan.environment import Resolve, expand, render_base, render_environment
from fairlead.engines.local.plan.identity import (
    PodRights,
    ServerRights,
    decide_rights,
    find_refused_fields,
)
from fairlead.engines.local.plan.limits import decide_pids, render_limits
from fairlead.engines.local.plan.remote_exec import check_places, member_link, render_files, render_remote_exec
from fairlead.engines.local.plan.volumes import (
    PERSONAL_HOME,
    SHARED_MEMORY,
    SHARED_MEMORY_BYTES,
    TEMPORARY,
    Volumes,
    can_be_made,
)
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSpec


def render_order(
    pod: PodSpec, rights: ServerRights, folders: AttemptFolders, device_memory: int, resolve: Resolve, volumes: Volumes
) -> LaunchOrder:
    """What the supervisor is told; raises Refused if the pod cannot be run here as it asks."""
    settings = rights.settings
    granted = _grant(pod, rights)
    user = granted.user
    if pod.container.fields.create_home_dir and settings.is_personal:
        user = msgspec.structs.replace(user, home=PERSONAL_HOME)
    key = (pod.pod_id, pod.attempt)
    base = render_base(user, pod.container.tty, volumes.caller_variables)
    environment = render_environment(pod, base, settings.host_address, device_memory, resolve)
    arguments = expand(pod.container.command + pod.container.args, environment)
    runtime = plan_container.choose(pod.container, settings)
    _check_command(arguments, runtime)
    files = render_files(pod, folders)
    check_places(files, volumes.mounts)
    working_dir = pod.container.working_dir or user.home
    mounts = _all_mounts([*files, *volumes.mounts], granted, rights, folders.private(key), working_dir)
    isolation = _render_isolation(granted, rights, folders, mounts)
    order = LaunchOrder(
        place=_render_place(pod, folders, key, settings),
        command=CommandLine(
            argv=arguments,
            env=environment,
            cwd=working_dir,
            makes_cwd=isolation is not None and is_within(working_dir, mounts),
            tty=pod.container.tty,
            stdin=pod.container.stdin,
            input=volumes.caller_input,
            grace=pod.container.termination_grace_seconds,
        ),
        rights=_render_rights(granted, rights, isolated=isolation is not None and isolation.isolated),
        limits=render_limits(
            f"{pod.pod_id}.{pod.attempt}",
            pod.container,
            decide_pids(settings.pids_limit, rights.is_shared, rights.means),
            rights.means,
        ),
        isolation=isolation,
        fetches=volumes.fetches,
        readiness=_render_readiness(pod),
        remote_exec=render_remote_exec(pod, folders),
        watched=volumes.watched,
        watch_seconds=settings.gauge_seconds,
        owner=owner_of(pod),
    )
    if runtime == plan_container.HOST:
        return order
    all_volumes = msgspec.structs.replace(volumes, mounts=(*files, *volumes.mounts))
    context = plan_container.ContainerContext(private=folders.private(key), data=folders.data, volumes=all_volumes)
    command, container = plan_container.render(runtime, pod, granted, rights, environment, context)
    order = _with_container(order, command, container)
    if volumes.fetches.git or volumes.fetches.buckets:
        order = order._replace(fetching=_render_fetching(container.mounts, granted, rights, folders, volumes, key))
    return order


def _check_command(arguments: Sequence[str], runtime: str) -> None:
    if not arguments and runtime == plan_container.HOST:
        raise Refused(
            "the pod has no command, and only a container runtime knows the entry point of an image; "
            "give a command, or use a container runtime"
        )


def _with_container(order: LaunchOrder, command: CommandLine, container: ContainerRun) -> LaunchOrder:
    """The order for a runtime, which does isolation, rights and limits; its own command runs as the server does."""
    return order._replace(
        command=order.command._replace(argv=command.argv, env=command.env, cwd=command.cwd, makes_cwd=False),
        container=container,
        isolation=None,
        rights=ProcessRights(),
        limits=ProcessLimits(),
    )


def _grant(pod: PodSpec, rights: ServerRights) -> PodRights:
    """The pod's rights; raises Refused if it asks for others."""
    security = pod.container.fields.security
    refused = find_refused_fields(security, rights)
    if refused:
        raise Refused("; ".join(f"{field}: {why}" for field, why in refused))
    return decide_rights(security, rights)


def _render_place(pod: PodSpec, folders: AttemptFolders, key: Key, settings: LocalSettings) -> AttemptPlace:
    return AttemptPlace(
        workload=pod.workload_id,
        pod=pod.pod_id,
        attempt=pod.attempt,
        journal=folders.journal(key),
        control=folders.control(key),
        logs=folders.logs(key),
        segment_bytes=settings.log_segment_bytes,
        segments=settings.log_segments,
        member=member_link(pod, folders),
    )


def _render_readiness(pod: PodSpec) -> ReadinessCheck | None:
    """The readiness probe; None without one that says what to ask."""
    probe = pod.container.fields.readiness
    if probe is None or not probe.port:
        return None
    check = ReadinessCheck(
        port=probe.port,
        initial_delay=probe.initial_delay_seconds,
        period=probe.period_seconds,
        timeout=probe.timeout_seconds,
        success_threshold=probe.success_threshold,
        failure_threshold=probe.failure_threshold,
    )
    get = probe.handler.http_get if probe.handler is not None else None
    if get is None:
        return check
    return check._replace(is_http=True, is_tls=get.scheme == "HTTPS", path=get.path or "/", host=get.host or "")


def _render_rights(granted: PodRights, rights: ServerRights, isolated: bool) -> ProcessRights:
    """What the pod's process becomes."""
    user = granted.user
    # A server that is not root stays who it is; so does root in personal mode, with the groups that it has.
    stays = not rights.has_root or user == rights.settings.owner
    return ProcessRights(
        uid=None if stays else user.uid,
        gid=None if stays else user.gid,
        user_groups=user.groups,
        bounding=None if granted.bounding is None else capabilities.numbers(granted.bounding),
        ambient=capabilities.numbers(granted.added),
        added=sorted(granted.added),
        no_new_privileges=granted.no_new_privileges,
        filtered=granted.filtered,
        own_processes=isolated,
        own_ipc=not granted.host_ipc,
        guard_knobs=isolated and rights.has_root and (user.uid == 0 or not granted.no_new_privileges),
    )


def _render_isolation(
    granted: PodRights, rights: ServerRights, folders: AttemptFolders, mounts: Sequence[Volume]
) -> IsolationPlan | None:
    """The pod's own view of the machine; None if it sees what its owner's shell does."""
    user, isolates = granted.user, rights.isolates
    if not isolates and not mounts and not granted.read_only_root:
        return None
    how = "a mount namespace" if rights.has_root else "a user and a mount namespace"
    isolated = f"isolated from this machine by {how}, as user {user.uid}"
    if rights.account is not None:
        isolated = f"runs as the account {user.login}, with its files, in {how}"
    return IsolationPlan(
        message=isolated if isolates else f"its volumes are mounted in {how}; otherwise it sees this machine as it is",
        mounts=MountPlan(mounts, user.uid, user.gid, os.path.realpath(folders.data)),
        isolated=isolates,
        user_namespace=not rights.has_root,
        # An account's files are its own, wherever they are; what it may write, their permissions say.
        read_only_root=(isolates and rights.account is None) or granted.read_only_root,
        hidden=[folders.data] if isolates else [],
    )


def _render_fetching(
    mounted: MountPlan, granted: PodRights, rights: ServerRights, folders: AttemptFolders, volumes: Volumes, key: Key
) -> FetchPlan | None:
    """Who fills a container's volumes from elsewhere: a process of this machine in a view of its own, as its user."""
    user = msgspec.structs.replace(granted.user, uid=mounted.uid, gid=mounted.gid, groups=())
    granted = msgspec.structs.replace(granted, user=user, read_only_root=False)
    wanted = {git.at for git in volumes.fetches.git} | {bucket.at for bucket in volumes.fetches.buckets}
    memory = Volume("memory", SHARED_MEMORY, "storage", size=SHARED_MEMORY_BYTES, mode=0o1777)
    mounts = [*(volume for volume in volumes.mounts if volume.at in wanted), memory]
    view = _render_isolation(
        granted, rights, folders, _all_mounts(mounts, granted, rights, folders.private(key), working_dir="")
    )
    if view is None:
        return None
    rendered = _render_rights(granted, rights, isolated=False)._replace(no_new_privileges=True, ambient=())
    return FetchPlan(view, volumes.fetches, rendered._replace(bounding=() if rights.has_root else None))


def _all_mounts(
    mounts: list[Volume], granted: PodRights, rights: ServerRights, private: str, working_dir: str
) -> list[Volume]:
    """The volumes with the places that an isolated pod has of its own: home, /tmp, its working directory."""
    if not rights.isolates:
        return mounts
    mounted = {volume.at for volume in mounts}
    own = _own_places(granted, private, has_home=rights.account is None)
    mounts = [*mounts, *(volume for volume in own if volume.at not in mounted)]
    if rights.account is not None or not can_be_made(working_dir, mounts):
        return mounts
    # A working directory that this machine does not have; none inside a volume.
    working_folder = Volume(
        "folder", posixpath.normpath(working_dir), "workingDir", source=f"{private}/work", mode=0o755
    )
    return [*mounts, working_folder._replace(owned=True, read_only=granted.read_only_root, only_if_missing=True)]


def _own_places(granted: PodRights, private: str, *, has_home: bool) -> list[Volume]:
    """Temporary files and, unless the user has one on this machine, a home; each the pod's alone."""
    home = ((granted.user.home, "home", 0o700),) if has_home else ()
    places = (*home, (TEMPORARY, "tmp", 0o1777))
    read_only = granted.read_only_root
    return [
        Volume("folder", at, name, source=f"{private}/{name}", mode=mode, owned=True, read_only=read_only)
        for at, name, mode in places
    ]


def is_within(path: str, volumes: Sequence[Volume]) -> bool:
    """Whether a path lies in a volume that can be written."""
    containing = [volume for volume in volumes if f"{path}/".startswith(f"{volume.at}/")]
    return bool(containing) and not max(containing, key=lambda volume: len(volume.at)).read_only
