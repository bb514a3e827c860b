"""How programs of one pod run commands in others of its group, without keys, tokens or a network: who may, and where.

Called by `orders.py` and the engine; reads nothing but its own program. A pod whose set says so finds a program and a
socket in a folder of its own; behind the socket is its supervisor (`envoys.py`), which passes requests on to the
supervisors of the pods of that one role.
"""

import posixpath
from typing import Any

from fairlead.engines.local.attempts import AttemptFolders
from fairlead.engines.local.plan import container, remote_agent
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSet, PodSpec

#: Where a pod that may run commands in others finds how.
PLACE = "/etc/fairlead"
AGENT = f"{PLACE}/agent"


def render_commanding(pod: PodSpec, folders: AttemptFolders) -> dict[str, Any]:
    """For the supervisor: by which name others of its group find the pod, and the pods that it may command."""
    group = folders.members(pod.workload_id, pod.group, pod.role)
    key = (pod.pod_id, pod.attempt)
    commands = None
    if pod.may_exec_in:
        commands = {
            "folder": f"{folders.private(key)}/commands",
            "members": folders.members(pod.workload_id, pod.group, pod.may_exec_in),
        }
    return {"member": f"{group}/{pod.pod_name}" if pod.addressed else "", "commands": commands}


def render_files(pod: PodSpec, folders: AttemptFolders) -> list[dict[str, Any]]:
    """The volumes in which a pod finds its set's files and, if it may run commands elsewhere, the program for it."""
    private = folders.private((pod.pod_id, pod.attempt))
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for path, text in pod.files.items():
        folder, name = posixpath.split(path)
        found.setdefault(folder, {})[name] = (text, 0o644)
    sources = {at: f"{private}/files{at}" for at in found}
    if pod.may_exec_in:
        found[PLACE] = {"agent": (_load_program(), 0o755)}
        sources[PLACE] = f"{private}/commands"
    return [
        {
            "kind": "folder",
            "at": at,
            "field": at,
            "source": sources[at],
            "files": files,
            "mode": 0o755,
            "read_only": True,
        }
        for at, files in found.items()
    ]


def _load_program() -> str:
    with open(remote_agent.__file__, encoding="utf-8") as file:
        return file.read()


def check_places(wanted: list[dict[str, Any]], taken: list[dict[str, Any]]) -> None:
    """Raises Refused where a volume of the spec would cover one of these."""
    places = {volume["at"]: volume["field"] for volume in taken}
    for volume in wanted:
        if volume["at"] in places:
            raise Refused(f"{places[volume['at']]}: '{volume['at']}' is taken by files of the workload itself")


def refusals(podset: PodSet, settings: LocalSettings) -> tuple[tuple[str, str], ...]:
    """Why pods of a set that needs such files or commands cannot be run as asked, as (field, why)."""
    runtime = container.choose(podset.container, settings)
    if not (podset.files or podset.may_exec_in) or container.can_stage(runtime):
        return ()
    why = (
        "pods that start programs in others of their workload find a socket and files in a place of their own, which "
        f"{runtime} cannot be given here; use the host runtime, or podman with a server of root"
    )
    return ((f"annotations[{container.ANNOTATION}]", why),)
