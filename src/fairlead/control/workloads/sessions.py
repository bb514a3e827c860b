"""Logs, commands and connections into pods of a workload: the only use cases that call an engine.

Called by the API.
"""

from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.expand import podsets_of
from fairlead.control.machine_accounts import check_same_account
from fairlead.control.serving.traffic import PendingRequest
from fairlead.control.serving.urls import Route, render_url
from fairlead.engines.base import ExecRequest as ExecRequest
from fairlead.engines.base import LogRequest as LogRequest
from fairlead.engines.base import Session as Session
from fairlead.engines.base import Sessions
from fairlead.kinds import KINDS
from fairlead.model.errors import Elsewhere, NotFound, Refused, Unavailable
from fairlead.model.pods.origin import PodOrigin
from fairlead.model.records.lease import Lease
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import LEASES, PODS, WORKLOADS

#: The maximum number of pods that are read to find the leader of a workload with several roles.
_LOOKED_AT = 500


async def pod_logs(
    context: Context, caller: Caller, workload_id: str, pod_name: str, request: LogRequest, previous: bool = False
) -> AsyncIterator[bytes]:
    """The output of one pod: the named one, or the leader, or the newest. Fills in which pod it is."""
    workload = await load_session_workload(context, caller, "logs", workload_id)
    pod = await _pod(context, workload, pod_name)
    if previous and request.attempt is None:
        pod, attempt = await _previous_attempt(context, workload, pod)
        request = msgspec.structs.replace(request, attempt=attempt)
    if context.sessions is None:
        raise await holder_error(context)
    origin = PodOrigin(
        cluster_id=workload.cluster_id,
        namespace=_namespace(context, workload),
        pod=pod.name,
        container=pod.container,
        created_at=pod.created_at,
        ended_at=pod.completed_at,
    )
    return context.sessions.logs(msgspec.structs.replace(request, pod_id=pod.id, origin=origin))


def _namespace(context: Context, workload: Workload) -> str:
    """The namespace of its project on a cluster; empty if the project is gone."""
    project = context.directory.projects.get(workload.project_id)
    return project.namespace if project is not None else ""


async def load_session_workload(context: Context, caller: Caller, verb: str, workload_id: str) -> Workload:
    """The workload, if the caller may open such a session into it. Asked again while the session lasts."""
    workload = await context.store.get(WORKLOADS, workload_id)
    missing = f"There is no workload with the id {workload_id}"
    if workload is None:
        raise NotFound(missing)
    if verb == "read":
        access.check(caller, "workloads:read", workload.project_id, missing=missing)
    elif verb == "logs":
        access.check(caller, f"{KINDS[workload.kind].rest}:read", workload.project_id, missing=missing)
    else:
        access.check(caller, f"{KINDS[workload.kind].rest}:update", workload.project_id, missing=missing)
        access.check_owner(caller, workload, is_protected=context.settings.protects_ownership)
    if verb != "logs":
        check_same_account(caller, workload)
    return workload


async def holder_error(context: Context) -> Elsewhere:
    """The error that leads to the server that runs the machine, as its lease says."""
    holder = await find_holder(context)
    return Elsewhere(holder.address if holder is not None else "")


async def find_holder(context: Context) -> Lease | None:
    leases: list[Lease] = await context.store.find(Query(collection=LEASES))
    return max(leases, key=lambda lease: lease.expires_at, default=None)


async def _pod(context: Context, workload: Workload, name: str) -> Pod:
    where = [Where("workload_id", Comparison.EQUAL, workload.id)]
    if name:
        where.append(Where("name", Comparison.EQUAL, name))
    roles = _several_roles(workload)
    query = Query(collection=PODS, where=tuple(where), order=(("created_at", True),), limit=_LOOKED_AT if roles else 1)
    pods: list[Pod] = await context.store.find(query)
    if not pods:
        what = f"no pod named {name}" if name else "no pod yet"
        raise NotFound(f"Workload {workload.name} has {what}; it is {workload.phase}")
    return _leading(pods, roles)


async def _previous_attempt(context: Context, workload: Workload, pod: Pod) -> tuple[Pod, int | None]:
    """The previous attempt of a pod that was restarted in place; otherwise the pod that it replaced, as in jobs."""
    if pod.attempt > 1:
        return pod, pod.attempt - 1
    fixed = {podset.role for podset in podsets_of(workload) if podset.has_fixed_indices}
    where = (Where("workload_id", Comparison.EQUAL, workload.id),)
    query = Query(collection=PODS, where=where, order=(("created_at", True),), limit=_LOOKED_AT)
    pods: list[Pod] = await context.store.find(query)
    for other in pods:
        has_ended = other.completed_at is not None and other.completed_at <= pod.created_at
        if other.id != pod.id and has_ended and _place(other, fixed) == _place(pod, fixed):
            return other, None
    raise NotFound(f"Pod {pod.name} was started only once; there is no previous attempt")


def _place(pod: Pod, fixed: set[str]) -> tuple[str, int, int | None]:
    """What a pod has in common with the one that replaces it; indices are reused in roles with fixed ones only."""
    return pod.role, pod.group, pod.index if pod.role in fixed else pod.array_index


def _several_roles(workload: Workload) -> list[str]:
    roles = [podset.role for podset in podsets_of(workload)]
    return roles if len(roles) > 1 else []


def _leading(pods: Sequence[Pod], roles: Sequence[str]) -> Pod:
    """The first pod of the first role in the latest run, such as a master; for a single role the first pod given."""
    if not roles:
        return pods[0]
    latest = max(pod.run for pod in pods)
    return min(
        (pod for pod in pods if pod.run == latest and pod.role in roles),
        key=lambda pod: (roles.index(pod.role), pod.group, pod.index),
        default=pods[0],
    )


async def run_command(
    context: Context, caller: Caller, workload_id: str, pod_name: str, request: ExecRequest
) -> Session:
    """Run a command in a pod of the workload: the named one, or the first that runs."""
    sessions, pod = await _find_running_pod(context, caller, "exec", workload_id, pod_name)
    return await sessions.exec(msgspec.structs.replace(request, pod_id=pod.id))


async def attach(
    context: Context, caller: Caller, workload_id: str, pod_name: str, *, from_start: bool = False
) -> Session:
    """Attach to the main process of a pod."""
    sessions, pod = await _find_running_pod(context, caller, "attach", workload_id, pod_name)
    return await sessions.attach(pod.id, from_start=from_start)


async def connect(context: Context, caller: Caller, workload_id: str, pod_name: str, port: int) -> int:
    """Connect to a port of a pod; returns a file descriptor."""
    sessions, pod = await _find_running_pod(context, caller, "port-forward", workload_id, pod_name)
    try:
        return await sessions.dial(pod.id, port)
    except OSError as error:
        raise Refused(f"Cannot connect to port {port} of pod {pod.name}: {error.strerror or 'no answer'}") from error


async def _find_running_pod(
    context: Context, caller: Caller, verb: str, workload_id: str, pod_name: str
) -> tuple[Sessions, Pod]:
    workload = await load_session_workload(context, caller, verb, workload_id)
    where = [Where("workload_id", Comparison.EQUAL, workload.id), Where("phase", Comparison.EQUAL, PodPhase.RUNNING)]
    if pod_name:
        where.append(Where("name", Comparison.EQUAL, pod_name))
    order = (("created_at", False),)
    roles = _several_roles(workload)
    query = Query(collection=PODS, where=tuple(where), order=order, limit=_LOOKED_AT if roles else 1)
    pods: list[Pod] = await context.store.find(query)
    if not pods:
        what = f"no running pod named {pod_name}" if pod_name else "no running pod"
        raise NotFound(f"Workload {workload.name} has {what}; it is {workload.phase}")
    if context.sessions is None:
        raise await holder_error(context)
    return context.sessions, _leading(pods, roles)


async def urls_of(context: Context, caller: Caller, workload_id: str) -> list[tuple[Route, str]]:
    """The URLs of a workload that `caller` may open, each with its route."""
    await load_session_workload(context, caller, "read", workload_id)
    if context.sessions is None:
        raise await holder_error(context)
    routes = [route for route in context.url_registry.routes_of(workload_id) if route.admits(caller)]
    return [(route, render_url(route.location, context.url_registry.settings)) for route in routes]


class Dialler:
    """How the reverse proxy reaches pods: picks one for a request, and connects to it."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def begin(self, workload_id: str) -> PendingRequest:
        """A request has arrived."""
        return self._context.url_registry.traffic.begin(workload_id)

    def listen_for_ends(self, cut: Callable[[str], None]) -> None:
        """Call `cut` with the id of a pod that has ended."""
        self._context.url_registry.traffic.listen_for_ends(cut)

    async def dial(self, pod_id: str, port: int) -> int:
        if self._context.sessions is None:
            raise Unavailable("This server runs no pods")
        return await self._context.sessions.dial(pod_id, port)
