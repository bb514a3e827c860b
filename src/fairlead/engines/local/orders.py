"""From a pod's spec to the order that its supervisor carries out: command, identity, places, limits. Pure."""

import os
from typing import Any

from fairlead.engines.local.attempts import Folders, Key
from fairlead.engines.local.environment import Resolve, expand, render_environment
from fairlead.engines.local.settings import Identity, LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.podset import PodSpec


def render_order(
    pod: PodSpec, settings: LocalSettings, folders: Folders, server_uid: int, device_memory: int, resolve: Resolve
) -> dict[str, Any]:
    """What the supervisor is told; raises Refused when the pod cannot be run here as it asks."""
    user = settings.owner or settings.run_as
    key = (pod.pod_id, pod.attempt)
    environment = render_environment(pod, user, settings.host_address, device_memory, resolve)
    arguments = expand(pod.container.command + pod.container.args, environment)
    if not arguments:
        raise Refused(
            "the pod has no command; on the host runtime an image's entry point is not known: "
            "give a command, or use a container runtime"
        )
    security = pod.container.fields.get("security") or {}
    if security.get("runAsNonRoot") and user.uid == 0:
        raise Refused("the pod must not run as root (runAsNonRoot), and this server runs pods as root")
    isolation = _isolation(settings, folders, user, key, server_uid)
    is_other = server_uid == 0 and user.uid != server_uid
    return {
        "workload": pod.workload_id,
        "pod": pod.pod_id,
        "attempt": pod.attempt,
        "journal": folders.journal(key),
        "control": folders.control(key),
        "logs": folders.logs(key),
        "argv": arguments,
        "env": environment,
        "cwd": pod.container.working_dir or user.home,
        "uid": user.uid if is_other else None,
        "gid": user.gid if is_other else None,
        "groups": list(user.groups),
        "tty": pod.container.tty,
        "stdin": pod.container.stdin,
        "grace": pod.container.termination_grace_seconds,
        "segment_bytes": settings.log_segment_bytes,
        "segments": settings.log_segments,
        "memory_limit": pod.container.memory_limit_bytes,
        "no_new_privileges": isolation is not None or security.get("allowPrivilegeEscalation") is False,
        "isolation": isolation,
    }


def _isolation(
    settings: LocalSettings, folders: Folders, user: Identity, key: Key, server_uid: int
) -> dict[str, Any] | None:
    """The plan of a pod's own view of the machine; None in personal mode, or where the operator allows none."""
    if settings.is_personal or settings.allowed.no_isolation:
        return None
    private = folders.private(key)
    how = "a mount namespace" if server_uid == 0 else "a user and a mount namespace"
    return {
        "words": f"isolated from this machine by {how}, as user {user.uid}",
        "user_namespace": server_uid != 0,
        "uid": user.uid,
        "gid": user.gid,
        "home": user.home,
        "home_source": os.path.join(private, "home"),
        "tmp_source": os.path.join(private, "tmp"),
        "hidden": [folders.data],
    }
