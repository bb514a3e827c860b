"""The best change for each of several waiting workloads, in a few words, for tables and progress lines.

A table must not wait for its suggestions. So the search for all of them together has a small budget, and on large
clusters nothing is searched here.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.foresight.search import FEW_JOBS
from fairlead.foresight.why import ANYBODY, Asker, WhyAnswer, explain_why
from fairlead.scheduling.model.snapshot import Snapshot

#: Jobs looked at over all calls of `decide`: about a tenth of a second.
_WORK, _MIN_JOBS = 10_000, 50
#: Calls of `decide` for one workload.
_CALLS = 60


def suggest_changes(snapshot: Snapshot, keys: Sequence[str], asker: Asker = ANYBODY) -> dict[str, str]:
    """By key, in the order given, until the budget is spent; workloads for which nothing was found are left out."""
    if len(snapshot.jobs) > FEW_JOBS:
        return {}
    calls_left = _WORK // max(len(snapshot.jobs), _MIN_JOBS)
    suggestions = {}
    for key in keys:
        if calls_left <= 0:
            break
        answer = explain_why(snapshot, key, asker, budget=min(calls_left, _CALLS))
        calls_left -= answer.decisions
        text = format_suggestion(answer)
        if text:
            suggestions[key] = text
    return suggestions


def format_suggestion(answer: WhyAnswer) -> str:
    """The first change of an answer and its price; empty if there is none."""
    if not answer.changes:
        return ""
    best = answer.changes[0]
    harm = best.effects
    price = [
        f"{verb} {concerned.count}"
        for verb, concerned in (("evicts", harm.evicted), ("moves", harm.moved), ("delays", harm.delayed))
        if concerned.count
    ]
    text = f"{best.message[:1].lower()}{best.message[1:]}"
    return f"{text} ({', '.join(price)})" if price else text
