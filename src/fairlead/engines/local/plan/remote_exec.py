"""How programs of one pod run commands in others of its group, without keys, tokens or a network: who may, and where.

Called by `render.py` and the engine; reads nothing but its own program. A pod whose set says so finds a program
and a socket in a folder of its own; behind the socket is its supervisor (`supervisor/remote_exec.py`), which passes
requests on to the supervisors of the pods of that one role.
"""

import posixpath
from collections.abc import Iterable

from fairlead.engines.local.attempts import AttemptFolders
from fairlead.engines.local.launch_order import Files, RemoteExecPlan, Volume
from fairlead.engines.local.plan import container, remote_agent
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSet, PodSpec

#: Where a pod that may run commands in others finds how.
PLACE = "/etc/fairlead"
AGENT = f"{PLACE}/agent"


def member_link(pod: PodSpec, folders: AttemptFolders) -> str:
    """The link by which other pods of its group find the pod; empty if they do not."""
    group = folders.members(pod.workload_id, pod.group, pod.role)
    return f"{group}/{pod.pod_name}" if pod.addressed else ""


def render_remote_exec(pod: PodSpec, folders: AttemptFolders) -> RemoteExecPlan | None:
    """For the supervisor: the pods in which the pod's programs may run commands."""
    if not pod.may_exec_in:
        return None
    return RemoteExecPlan(
        folder=f"{folders.private((pod.pod_id, pod.attempt))}/commands",
        members=folders.members(pod.workload_id, pod.group, pod.may_exec_in),
    )


def render_files(pod: PodSpec, folders: AttemptFolders) -> list[Volume]:
    """The volumes in which a pod finds its set's files and, if it may run commands elsewhere, the program for it."""
    private = folders.private((pod.pod_id, pod.attempt))
    folder_files: dict[str, Files] = {}
    for path, text in pod.files.items():
        folder, name = posixpath.split(path)
        folder_files.setdefault(folder, {})[name] = (text, 0o644)
    sources = {at: f"{private}/files{at}" for at in folder_files}
    if pod.may_exec_in:
        folder_files[PLACE] = {"agent": (_load_program(), 0o755)}
        sources[PLACE] = f"{private}/commands"
    return [
        Volume("folder", at, field=at, source=sources[at], files=files, mode=0o755, read_only=True)
        for at, files in folder_files.items()
    ]


def _load_program() -> str:
    with open(remote_agent.__file__, encoding="utf-8") as file:
        return file.read()


def check_places(wanted: Iterable[Volume], mounted: Iterable[Volume]) -> None:
    """Raises Refused if a volume of the spec would cover one of these."""
    fields = {volume.at: volume.field for volume in mounted}
    for volume in wanted:
        if volume.at in fields:
            raise Refused(
                f"{fields[volume.at]}: '{volume.at}' is used for files of Fairlead in this pod; choose another path"
            )


def refusals(podset: PodSet, settings: LocalSettings) -> tuple[tuple[str, str], ...]:
    """Why pods of a set that needs such files or commands cannot be run as asked, as (field, why)."""
    runtime = container.choose(podset.container, settings)
    if not (podset.files or podset.may_exec_in) or container.can_stage(runtime):
        return ()
    why = (
        "pods that start programs in other pods of their workload need a socket and files, which "
        f"{runtime} cannot mount here; use the host runtime, or podman with a server that runs as root"
    )
    return ((f"annotations[{container.ANNOTATION}]", why),)
