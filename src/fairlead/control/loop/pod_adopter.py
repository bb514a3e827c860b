"""Takes over running pods that the database does not know, when a server starts: after a restore, they come first.

Called by the pod driver after the first observation and before anything is placed, so that no device is given out
twice. A pod that cannot be adopted is stopped, and its end is waited for.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from fairlead.control.context import Context
from fairlead.control.decide.pods.adoption import Adoption, decide_adoption, end_before_restore
from fairlead.control.ledger.intervals import use_of_pod
from fairlead.control.loop.board import Board
from fairlead.engines.base import Forget, PodEngine, PodReport, PodState, Stop
from fairlead.model.clock import Millis
from fairlead.model.records.event import Event
from fairlead.model.records.workload import LaunchRecord, Pod, Workload
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import PODS, USAGE, WORKLOADS

log = logging.getLogger(__name__)

_ENDED = frozenset({PodState.EXITED, PodState.LOST})
#: How long a pod that is not adopted has between TERM and KILL, and how often its end is looked for.
_GRACE_SECONDS = 30
_LOOK_SECONDS = 0.05


class PodAdopter:
    def __init__(self, context: Context, engine: PodEngine, board: Board) -> None:
        self._context = context
        self._engine = engine
        self._board = board

    async def adopt(self, reports: Sequence[PodReport]) -> list[PodReport]:
        """Adopt or stop the unknown pods among those that run; returns further reports that came meanwhile."""
        unknown = [report for report in reports if report.state not in _ENDED and report.pod_id not in self._board.pods]
        running = {report.pod_id for report in reports if report.state not in _ENDED}
        by_workload: dict[str, list[PodReport]] = defaultdict(list)
        for report in unknown:
            by_workload[report.workload_id].append(report)
        stopped: list[PodReport] = []
        nodes: set[str] = set()
        for workload_id, of_workload in by_workload.items():
            adopted = await self._adopt_workload(workload_id, of_workload, running)
            stopped += [report for report in of_workload if report.pod_id not in adopted]
            nodes |= set(adopted.values())
        await self._give_up_places(nodes, running)
        return await self._stop(stopped) if stopped else []

    async def _give_up_places(self, nodes: set[str], running: set[str]) -> None:
        """Pods on record that do not run wait for a new place, if theirs may belong to an adopted pod by now."""
        now = self._context.clock()
        for entry in list(self._board.entries.values()):
            not_running = [pod for pod in entry.pods if pod.node in nodes and pod.id not in running]
            if not_running:
                ended = [end_before_restore(pod, now) for pod in not_running]
                await self._context.store.commit(Change(writes=_end_writes(entry.workload, ended, now)))
                self._board.put(entry.workload, [pod for pod in entry.pods if pod not in not_running])

    async def _adopt_workload(
        self, workload_id: str, reports: Sequence[PodReport], running: set[str]
    ) -> dict[str, str]:
        """Record a workload and its pods as they were launched; returns the adopted pods and their nodes."""
        launched = [record for report in reports if (record := self._load_record(report)) is not None]
        if not self._context.settings.adopts_unknown_pods or not launched:
            return {}
        if launched[0].workload.project_id not in self._context.directory.projects:
            return {}
        known = await self._context.store.get(WORKLOADS, workload_id)
        where = (Where("workload_id", Comparison.EQUAL, workload_id),)
        recorded = [
            pod
            for pod in await self._context.store.find(Query(collection=PODS, where=where))
            if not pod.has_ended and pod.id not in running
        ]
        adoption = decide_adoption(launched, known, recorded, self._context.clock())
        if adoption is None:
            return {}
        await self._record(adoption)
        return {pod.id: pod.node for pod in adoption.pods}

    def _load_record(self, report: PodReport) -> LaunchRecord | None:
        content = self._engine.load_record(report.pod_id, report.attempt)
        try:
            return msgspec.json.decode(content, type=LaunchRecord) if content else None
        except msgspec.MsgspecError:
            log.exception("the launch record of pod %s cannot be read", report.pod_id)
            return None

    async def _record(self, adoption: Adoption) -> None:
        workload, names = adoption.workload, ", ".join(pod.name for pod in adoption.pods)
        message = f"Adopted running pods that the database did not know: {names}"
        event = Event(
            at=self._context.clock(),
            subject=WORKLOADS.name,
            subject_id=workload.id,
            project_id=workload.project_id,
            type="Warning",
            reason="Adopted",
            message=message,
            source="engine",
        )
        adopted = [Put(PODS, pod) for pod in adoption.pods]
        ended_writes = _end_writes(workload, adoption.ended, self._context.clock())
        writes = (Put(WORKLOADS, workload), *adopted, *ended_writes)
        await self._context.store.commit(Change(writes=writes, events=(event,)))
        known = self._board.entries.get(workload.id)
        ended = {pod.id for pod in adoption.ended}
        other_pods = [pod for pod in known.pods if pod.id not in ended] if known else []
        self._board.put(workload, [*other_pods, *adoption.pods])
        log.warning("workload %s of project %s: %s", workload.name, workload.project_name, message)

    async def _stop(self, reports: Sequence[PodReport]) -> list[PodReport]:
        """Stop pods that are not adopted, and wait until they are gone."""
        for report in reports:
            log.warning("stopping pod %s of workload %s: no record knows it", report.pod_id, report.workload_id)
        await self._engine.apply([Stop(report.pod_id, report.attempt, _GRACE_SECONDS) for report in reports])
        still_running = {report.pod_id for report in reports}
        others: list[PodReport] = []
        while still_running:
            observed = [report for report in await self._engine.observe() if isinstance(report, PodReport)]
            others += [report for report in observed if report.pod_id not in still_running]
            still_running -= {report.pod_id for report in observed if report.state in _ENDED}
            await asyncio.sleep(_LOOK_SECONDS)
        await self._engine.apply([Forget(report.pod_id) for report in reports])
        return others


def _end_writes(workload: Workload, ended: Sequence[Pod], now: Millis) -> tuple[Put, ...]:
    """The records of pods that have ended, and what they held."""
    return tuple(put for pod in ended for put in (Put(PODS, pod), Put(USAGE, use_of_pod(workload, pod, now))))
