"""The workloads for which another one waits: found when it is submitted, and checked again when one of them ends.

Called by `workloads/submit.py` and by `names.py`. What a dependency means is in `decide/dependencies.py`.
"""

from collections.abc import Sequence

from fairlead.admission.admit import invalid_annotation
from fairlead.control.context import Context
from fairlead.control.decide.dependencies import dependency_ids, describe_unmet, recheck
from fairlead.model.after import ANNOTATION, Dependency
from fairlead.model.records.organization import Project
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import WORKLOADS


async def find_unmet(context: Context, project: Project, dependencies: Sequence[Dependency]) -> tuple[str, ...]:
    """What a new workload has to wait for; raises Invalid if its project has no workload of such a name."""
    if not dependencies:
        return ()
    names = tuple(each.name for each in dependencies)
    where = (Where("project_id", Comparison.EQUAL, project.id), Where("live_name", Comparison.ONE_OF, names))
    by_name = {other.name: other for other in await context.store.find(Query(collection=WORKLOADS, where=where))}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise invalid_annotation(f"{ANNOTATION}: project {project.name} has no workload {', '.join(unknown)}")
    unmet = [text for each in dependencies for text in describe_unmet(each, by_name[each.name])]
    return tuple(dict.fromkeys(unmet))


async def recheck_dependencies(context: Context, waits_for: Sequence[str]) -> tuple[str, ...]:
    """What is left of the dependencies among these."""
    ids = dependency_ids(waits_for)
    if not ids:
        return recheck(waits_for, {})
    query = Query(collection=WORKLOADS, where=(Where("id", Comparison.ONE_OF, ids),))
    return recheck(waits_for, {other.id: other for other in await context.store.find(query)})
