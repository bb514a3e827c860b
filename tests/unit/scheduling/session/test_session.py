"""Whatever an attempt does, undoing it restores every book."""

import pytest

from fairlead.scheduling.cases import build
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.queues import build_queues
from fairlead.scheduling.session.attempt import PlacementAttempt
from fairlead.scheduling.session.session import SchedulingSession

CASE = {
    "nodes": {"n1": {"gpu": 4, "extended": {"rdma": 2}}, "n2": {"gpu": 2}},
    "queues": {"d": 4, "q": {"gpu": 4, "parent": "d"}},
    "jobs": {
        "whole": {"gpu": 1, "tasks": 2, "at": ["n1", "n2"], "cpu": 1},
        "part": {"portion": 0.5, "at": "n1", "sharedOn": ["g"], "priority": 100},
        "wide": {"extended": {"rdma": 1}, "at": "n1"},
        "new": {"portion": 0.5, "devices": 2},
        "more": {"gpu": 1, "tasks": 2},
    },
}


def opened() -> SchedulingSession:
    snapshot = build(CASE)
    session = SchedulingSession(snapshot, "default", build_queues(snapshot, "default")[0])
    for job in snapshot.jobs:
        session.add_job(job)
    session.divide_fair_shares()
    return session


def books(session: SchedulingSession) -> object:
    nodes = [
        (
            (n.idle_cpu, n.idle_memory, n.idle_pods, n.idle_gpu, sorted((k, v) for k, v in n.idle_ext.items() if v)),
            (n.releasing_cpu, n.releasing_memory, n.releasing_pods, n.releasing_gpu),
            sorted((k, v) for k, v in n.releasing_ext.items() if v),
            sorted((g.id, g.allocated, g.pipelined, g.releasing, g.steady) for g in n.groups.values()),
            sorted(n.tasks),
        )
        for n in session.nodes
    ]
    queues = [(q.name, tuple(q.allocated), tuple(q.non_preemptible)) for q in session.queues.values()]
    jobs = [
        (j.id, j.pending, [(p.name, p.active, p.used, p.alive, p.gated, p.pipelined, p.succeeded) for p in j.pod_sets])
        for j in session.jobs.values()
    ]
    tasks = [(t.id, t.status, t.node, t.groups, t.virtual, t.charge) for j in session.jobs.values() for t in j.tasks]
    return nodes, queues, jobs, tasks


def evict_all(session: SchedulingSession) -> None:
    for job in session.jobs.values():
        for task in job.tasks:
            if st.ACTIVE[task.status]:
                session.evict(task)


def place(session: SchedulingSession, job: str, pipeline_only: bool) -> bool:
    return PlacementAttempt(session, session.jobs[job], pipeline_only, explain=False).run(session.nodes)


@pytest.mark.parametrize("pipeline_only", [True, False])
def test_an_undone_attempt_leaves_no_trace(pipeline_only: bool) -> None:
    session = opened()
    before = books(session)
    assert place(session, "new", pipeline_only)
    assert place(session, "more", pipeline_only)
    assert books(session) != before
    session.rollback(0)
    assert books(session) == before


def test_undoing_evictions_and_moves() -> None:
    session = opened()
    before = books(session)
    evict_all(session)
    for job in ("more", "new", "whole", "part", "wide"):
        place(session, job, pipeline_only=True)
    session.rollback(0)
    assert books(session) == before


def test_an_evicted_task_on_its_old_place_simply_stays() -> None:
    session = opened()
    before = books(session)
    task = session.jobs["whole"].tasks[0]
    session.evict(task)
    session.pipeline(task, session.node_by_name["n1"], ())
    assert task.status == st.RUNNING
    assert books(session) == before


def test_an_evicted_task_elsewhere_is_on_both_nodes() -> None:
    session = opened()
    task = session.jobs["whole"].tasks[0]
    session.evict(task)
    session.pipeline(task, session.node_by_name["n2"], ())
    assert task.status == st.PIPELINED
    assert task.id in session.node_by_name["n1"].tasks
    assert task.id in session.node_by_name["n2"].tasks
    assert session.queues["d"].allocated[2] == 2500


def test_checkpoints_nest() -> None:
    session = opened()
    session.evict(session.jobs["whole"].tasks[0])
    middle = books(session)
    mark = session.checkpoint()
    session.evict(session.jobs["whole"].tasks[1])
    session.rollback(mark)
    assert books(session) == middle


def test_what_is_committed_is_bound_and_stays() -> None:
    session = opened()
    assert place(session, "more", pipeline_only=False)
    session.commit()
    after = books(session)
    session.rollback(0)
    assert books(session) == after
    assert {task.status for task in session.jobs["more"].tasks} == {st.BINDING}
