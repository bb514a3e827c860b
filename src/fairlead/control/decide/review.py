"""Before a workload starts: what its engine refuses or ignores of it, and which of its URLs are taken. Pure.

Called by the phase machine for new workloads, and for those that waited for names once they have them all.
"""

from collections.abc import Callable, Sequence

import msgspec

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.manifests import podset_of_metadata, podsets_of_other_templates
from fairlead.engines.base import NO_ISOLATION, Review
from fairlead.model.dialect import Dialect
from fairlead.model.pods.container_fields import NO_SECURITY
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import WAITS_FOR_NAMES, Condition, Workload

#: The condition that names a field which has no or less effect on this engine.
NOT_ENFORCED = "NotEnforced"
#: The condition that names what isolates the pods from their machine; False if nothing does.
ISOLATION = "Isolation"
_NOT_PROVIDED = "NotProvided"
_OF_METADATA = ("metadata.labels[", "metadata.annotations[")

#: Claims the URLs of a new workload: their names, and (field, why) for those that are taken.
Expose = Callable[[WorkloadEntry], tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]


def expose_nothing(entry: WorkloadEntry) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """For an engine that serves no URLs."""
    return (), ()


def is_to_be_reviewed(workload: Workload) -> bool:
    """A new workload is; one that waited for names, when it has them all."""
    if workload.waits_for:
        return False
    return workload.phase is Phase.CREATING or (workload.phase is Phase.PENDING and _has_waited(workload))


def _has_waited(workload: Workload) -> bool:
    return any(condition.type == WAITS_FOR_NAMES and condition.status == "True" for condition in workload.conditions)


def decide_review(draft: Draft, review: Callable[[PodSet], Review], expose: Expose) -> None:
    """Write what is refused or ignored into conditions. A refused workload fails."""
    podsets = (*draft.entry.podsets, *podsets_of_other_templates(draft.workload))
    reviews = [review_of(podset, review) for podset in podsets]
    if draft.workload.dialect is Dialect.OBJECT:
        own = review_of(podset_of_metadata(draft.workload, podsets[0]), review)
        about_metadata = tuple(note for note in own.advisory if note[0].startswith(_OF_METADATA))
        reviews.append(Review(advisory=about_metadata))
    urls, url_conflicts = expose(draft.entry)
    if urls:
        draft.set(urls=urls)
    refused = [*((field, why) for each in reviews for field, why in each.refused), *url_conflicts]
    if refused:
        # What holds for the pods of every role is said once.
        draft.fatal = "Cannot start: " + "; ".join(dict.fromkeys(f"{field}: {why}" for field, why in refused))
    if _has_waited(draft.workload):
        _end_wait(draft)
    _add_conditions(draft, _find_notes(reviews, refused))


def review_of(podset: PodSet, review: Callable[[PodSet], Review]) -> Review:
    """What the engine says of a pod set, with paths from the top of the spec: those of a role begin with its member."""
    reviewed = review(podset)
    if not podset.member:
        return reviewed
    refused, forbidden, advisory = (
        tuple((f"{podset.member}.{field}", why) for field, why in notes)
        for notes in (reviewed.refused, reviewed.forbidden, reviewed.advisory)
    )
    return msgspec.structs.replace(reviewed, refused=refused, forbidden=forbidden, advisory=advisory)


def forbidden_fields(podsets: Sequence[PodSet], review: Callable[[PodSet], Review]) -> list[tuple[str, str]]:
    """The privileges and mounts that this server refuses whatever happens, as (path of the field, why).

    Asked at submission. Privileges count only if the workload asks for some.
    """
    return [note for podset in podsets for note in _forbidden(podset, review_of(podset, review))]


def _forbidden(podset: PodSet, reviewed: Review) -> list[tuple[str, str]]:
    member = f"{podset.member}." if podset.member else ""
    asks = podset.container.fields.security != NO_SECURITY
    places = (f"{member}storage.hostPath[", *((f"{member}security.",) if asks else ()))
    return [*(note for note in reviewed.refused if note[0].startswith(places)), *reviewed.forbidden]


def _find_notes(reviews: list[Review], refused: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """What to tell, as (type of the condition, reason, message)."""
    ignored = [(NOT_ENFORCED, field, why) for review in reviews for field, why in review.advisory]
    if refused:
        return [*ignored, *((_NOT_PROVIDED, field, why) for field, why in refused)]
    return [*ignored, *((ISOLATION, *review.isolation) for review in reviews if review.isolation)]


def _end_wait(draft: Draft) -> None:
    draft.set_phase(Phase.PENDING, "Waiting to be scheduled")
    others = tuple(condition for condition in draft.workload.conditions if condition.type != WAITS_FOR_NAMES)
    has_names = Condition(type=WAITS_FOR_NAMES, status="False", last_transition_time=draft.now)
    draft.set(conditions=(*others, has_names))


def _add_conditions(draft: Draft, notes: list[tuple[str, str, str]]) -> None:
    """Each once: a workload that is still new is reviewed again with every report."""
    known = {(condition.type, condition.reason, condition.message) for condition in draft.workload.conditions}
    new = tuple(
        Condition(
            type=type, status=_status(type, reason), reason=reason, message=message, last_transition_time=draft.now
        )
        for type, reason, message in dict.fromkeys(notes)
        if (type, reason, message) not in known
    )
    if new:
        draft.set(conditions=draft.workload.conditions + new)


def _status(type: str, reason: str) -> str:
    return "False" if type == ISOLATION and reason == NO_ISOLATION else "True"
