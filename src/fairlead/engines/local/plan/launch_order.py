"""From a pod's spec to the order that its supervisor carries out: command, identity, places, limits. Pure."""

import os
import posixpath
from typing import Any

import msgspec

from fairlead.engines.local.attempts import AttemptFolders, Key
from fairlead.engines.local.linux import capabilities
from fairlead.engines.local.network.ports import owner_of
from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan.environment import Resolve, expand, render_environment
from fairlead.engines.local.plan.identity import PodRights, ServerRights, decide_rights, find_refused_fields
from fairlead.engines.local.plan.limits import decide_pids, render_limits
from fairlead.engines.local.plan.remote_exec import check_places, render_commanding, render_files
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
from fairlead.model.pods.container_fields import given
from fairlead.model.pods.podset import PodSpec


def render_order(
    pod: PodSpec, rights: ServerRights, folders: AttemptFolders, device_memory: int, resolve: Resolve, volumes: Volumes
) -> dict[str, Any]:
    """What the supervisor is told; raises Refused when the pod cannot be run here as it asks."""
    settings = rights.settings
    security = pod.container.fields.security
    refused = find_refused_fields(security, rights)
    if refused:
        raise Refused("; ".join(f"{field}: {why}" for field, why in refused))
    granted = decide_rights(security, rights)
    user = granted.user
    if pod.container.fields.create_home_dir and settings.is_personal:
        user = msgspec.structs.replace(user, home=PERSONAL_HOME)
    key = (pod.pod_id, pod.attempt)
    environment = render_environment(pod, user, settings.host_address, device_memory, resolve)
    arguments = expand(pod.container.command + pod.container.args, environment)
    runtime = plan_container.choose(pod.container, settings)
    if not arguments and runtime == plan_container.HOST:
        raise Refused(
            "the pod has no command; on the host runtime an image's entry point is not known: "
            "give a command, or use a container runtime"
        )
    files = render_files(pod, folders)
    check_places(files, list(volumes.mounts))
    working_dir = pod.container.working_dir or user.home
    isolation = _view(granted, rights, folders, key, [*files, *volumes.mounts], working_dir)
    order = {
        **_render_places(pod, folders, key, settings),
        "argv": arguments,
        "env": environment,
        "cwd": working_dir,
        "makes_cwd": isolation is not None and is_within(working_dir, isolation["volumes"]),
        "tty": pod.container.tty,
        "stdin": pod.container.stdin,
        "grace": pod.container.termination_grace_seconds,
        "isolation": isolation,
        "fetches": list(volumes.fetches),
        "gauges": list(volumes.gauges),
        "gauge_seconds": settings.gauge_seconds,
        **_render_network(pod),
        **render_commanding(pod, folders),
        **render_limits(
            f"{pod.pod_id}.{pod.attempt}",
            pod.container,
            decide_pids(settings.pids_limit, rights.is_shared, rights.means),
            rights.means,
        ),
        **_render_rights(granted, rights, isolated=isolation is not None and isolation["isolated"]),
        "container": None,
        "fetching": None,
    }
    if runtime == plan_container.HOST:
        return order
    whole = msgspec.structs.replace(volumes, mounts=(*files, *volumes.mounts))
    around = plan_container.ContainerContext(private=folders.private(key), data=folders.data, volumes=whole)
    order |= plan_container.render(runtime, pod, granted, rights, environment, around)
    if volumes.fetches:
        order["fetching"] = _render_fetching(order["container"], granted, rights, folders, key, volumes)
    return order


def _render_places(pod: PodSpec, folders: AttemptFolders, key: Key, settings: LocalSettings) -> dict[str, Any]:
    """Which attempt it is, and where its journal, its socket and its output lie."""
    return {
        "workload": pod.workload_id,
        "pod": pod.pod_id,
        "attempt": pod.attempt,
        "journal": folders.journal(key),
        "control": folders.control(key),
        "logs": folders.logs(key),
        "segment_bytes": settings.log_segment_bytes,
        "segments": settings.log_segments,
    }


def _render_network(pod: PodSpec) -> dict[str, Any]:
    """What is asked of it, and places for what the engine gives to pods that serve: address and ports."""
    return {
        "probe": _probe(pod),
        "network": None,
        "user_file": -1,
        "ports": [],
        "listens": [],
        "holds": [],
        "owner": owner_of(pod),
    }


def _probe(pod: PodSpec) -> dict[str, Any] | None:
    """The readiness probe; None without one that says what to ask."""
    probe = pod.container.fields.readiness
    return given(probe) if probe is not None and probe.port else None


def _render_rights(granted: PodRights, rights: ServerRights, isolated: bool) -> dict[str, Any]:
    """What the pod's process becomes, as `launch.py` does it."""
    user = granted.user
    # A server that is not root stays who it is; so does root in personal mode, with the groups that it has.
    stays = not rights.has_root or user == rights.settings.owner
    return {
        "uid": None if stays else user.uid,
        "gid": None if stays else user.gid,
        "user_groups": list(user.groups),
        "bounding": None if granted.bounding is None else capabilities.numbers(granted.bounding),
        "ambient": capabilities.numbers(granted.added),
        "added": sorted(granted.added),
        "no_new_privileges": granted.no_new_privileges,
        "filtered": granted.filtered,
        "own_processes": isolated,
        "own_ipc": not granted.host_ipc,
        "guard_knobs": isolated and rights.has_root and (user.uid == 0 or not granted.no_new_privileges),
    }


def _view(
    granted: PodRights,
    rights: ServerRights,
    folders: AttemptFolders,
    key: Key,
    mounts: list[dict[str, Any]],
    working_dir: str = "",
) -> dict[str, Any] | None:
    """The plan of a pod's own view of the machine; None where it sees what its owner's shell does."""
    user, isolates = granted.user, rights.isolates
    if isolates:
        taken = {volume["at"] for volume in mounts}
        mounts += [volume for volume in _own_places(granted, folders.private(key)) if volume["at"] not in taken]
        mounts += _working_place(working_dir, mounts, granted, folders.private(key))
    elif not mounts and not granted.read_only_root:
        return None
    how = "a mount namespace" if rights.has_root else "a user and a mount namespace"
    words = f"isolated from this machine by {how}, as user {user.uid}"
    return {
        "words": words if isolates else f"its volumes are mounted in {how}; otherwise it sees this machine as it is",
        "isolated": isolates,
        "user_namespace": not rights.has_root,
        "uid": user.uid,
        "gid": user.gid,
        "read_only_root": isolates or granted.read_only_root,
        "volumes": mounts,
        "hidden": [folders.data] if isolates else [],
        "data": os.path.realpath(folders.data),
    }


def _render_fetching(
    container: dict[str, Any],
    granted: PodRights,
    rights: ServerRights,
    folders: AttemptFolders,
    key: Key,
    volumes: Volumes,
) -> dict[str, Any]:
    """Who fills a container's volumes from elsewhere: a process of this machine in a view of its own, as its user."""
    user = msgspec.structs.replace(granted.user, uid=container["uid"], gid=container["gid"], groups=())
    granted = msgspec.structs.replace(granted, user=user, read_only_root=False)
    wanted = {fetch["at"] for fetch in volumes.fetches}
    memory = {"kind": "memory", "at": SHARED_MEMORY, "field": "storage", "size": SHARED_MEMORY_BYTES, "mode": 0o1777}
    mounts = [*(volume for volume in volumes.mounts if volume["at"] in wanted), memory]
    view = _view(granted, rights, folders, key, mounts)
    rendered = _render_rights(granted, rights, isolated=False) | {"bounding": [] if rights.has_root else None}
    return {"isolation": view, "fetches": list(volumes.fetches), **rendered, "no_new_privileges": True, "ambient": []}


def _own_places(granted: PodRights, private: str) -> list[dict[str, Any]]:
    """Home and temporary files, each the pod's alone."""
    places = ((granted.user.home, "home", 0o700), (TEMPORARY, "tmp", 0o1777))
    return [
        {
            "kind": "folder",
            "at": at,
            "field": name,
            "source": f"{private}/{name}",
            "mode": mode,
            "owned": True,
            "read_only": granted.read_only_root,
        }
        for at, name, mode in places
    ]


def _working_place(
    working_dir: str, mounts: list[dict[str, Any]], granted: PodRights, private: str
) -> list[dict[str, Any]]:
    """A folder of the pod's own for a working directory that this machine does not have; none inside a volume."""
    if not can_be_made(working_dir, mounts):
        return []
    place = {"kind": "folder", "at": posixpath.normpath(working_dir), "field": "workingDir", "mode": 0o755}
    given = {"source": f"{private}/work", "owned": True, "read_only": granted.read_only_root}
    return [{**place, **given, "only_if_missing": True}]


def is_within(path: str, volumes: list[dict[str, Any]]) -> bool:
    """Whether a path lies in a volume that can be written."""
    around = [volume for volume in volumes if f"{path}/".startswith(f"{volume['at']}/")]
    return bool(around) and not max(around, key=lambda volume: len(volume["at"])).get("read_only")
