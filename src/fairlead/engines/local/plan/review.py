"""What of a pod's fields this engine provides, what is only advice here, and what it must refuse before a start. Pure.

`control` asks at submission: a field of `unsupported` fails the workload before its start, one of `advisory` becomes a
condition. Fields not named here have their effect elsewhere (scheduling, records), or have it on this engine.
"""

from collections.abc import Callable

from fairlead.engines.base import NO_ISOLATION, Review
from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan import containers_effects, identity, limits
from fairlead.engines.local.plan.identity import ServerRights
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodContainer
from fairlead.model.records.assets import Reference
from fairlead.model.spec.references import pod_references

#: (path of the field, why)
Note = tuple[str, str]

_SHARES = ("gpuPortionRequest", "gpuPortionLimit", "gpuMemoryRequest", "gpuMemoryLimit")


#: (what is refused, what has less effect here) of a container's storage.
ReviewStorage = Callable[[PodContainer], tuple[list[Note], list[Note]]]


def review(container: PodContainer, rights: ServerRights, review_storage: ReviewStorage) -> Review:
    """What is said of a pod before its start, by what this server can and what its operator allows."""
    security = container.fields.get("security") or {}
    try:
        runtime = plan_container.choose(container, rights.settings)
    except Refused as error:
        return Review(refused=((f"annotations[{plan_container.ANNOTATION}]", str(error)),))
    in_container = runtime != plan_container.HOST
    may_use_secrets = rights.settings.is_personal or rights.isolates or in_container
    storage_refused, storage_advisory = review_storage(container)
    if in_container:
        refused = (
            *identity.find_refused_fields(security, rights),
            *containers_effects.refusals(runtime, container, rights),
        )
        remarks = (*containers_effects.remarks(runtime, container, rights), *identity.remarks(security, rights))
        own = (*storage_advisory, *_shares(container), *_tolerations(container))
        isolation = name_isolation(runtime, rights)
        return Review(refused=(*refused, *storage_refused), advisory=(*own, *remarks), isolation=isolation)
    return Review(
        refused=(
            *unsupported(container, may_use_secrets),
            *identity.find_refused_fields(security, rights),
            *storage_refused,
        ),
        advisory=(
            *storage_advisory,
            *advisory(container),
            *identity.remarks(security, rights),
            *limits.remarks(container, rights.means),
        ),
        isolation=name_isolation(runtime, rights),
    )


def name_isolation(runtime: str, rights: ServerRights) -> tuple[str, str]:
    """What keeps a pod of that runtime apart from this machine: its name, and what that means."""
    if runtime != plan_container.HOST:
        root = "; root in it is nobody on this machine" if plan_container.is_mapped(runtime, rights) else ""
        return "Container", f"it runs in a container of {runtime}{root}"
    if rights.isolates:
        name, more = ("Namespaces", "mount") if rights.has_root else ("UserNamespaces", "user, mount")
        return name, f"{more} and process namespaces: it writes only to places of its own (volumes, home, /tmp)"
    if rights.is_shared:
        return NO_ISOLATION, "its operator allows that (--allow no-isolation): it sees this machine as its user does"
    return NO_ISOLATION, "the server is personal: it sees this machine as its owner does"


def unsupported(container: PodContainer, may_use_secrets: bool = True) -> tuple[Note, ...]:
    """Fields that this engine cannot provide and may not ignore, each with the reason.

    Secrets may be used where the server is its owner's alone, or where pods are isolated from each other.
    """
    return () if may_use_secrets else tuple(_secrets(container))


def _secrets(container: PodContainer) -> list[Note]:
    return [
        (use.path, f"pods are not isolated from each other here, so '{use.name}' could be read by all of them")
        for use in pod_references(container)
        # No image is pulled on the host runtime, so a pull secret is not handed out.
        if use.reference in (Reference.SECRET, Reference.USER_CREDENTIAL) and not use.path.startswith("imagePull")
    ]


def advisory(container: PodContainer) -> tuple[Note, ...]:
    """Fields that are recorded and counted but not enforced on this engine, each with what happens instead."""
    notes: list[Note] = []
    if container.image:
        notes.append(("image", "recorded, not used: the process runs on this machine's own file system"))
    pulling = (name for name in ("imagePullPolicy", "imagePullSecrets") if container.fields.get(name))
    notes += [(name, "no image is pulled on the host runtime") for name in pulling]
    notes += _shares(container) + _tolerations(container)
    return tuple(notes)


def _tolerations(container: PodContainer) -> list[Note]:
    given = enumerate(container.fields.get("tolerations") or ())
    timed = [each.get("name") or number for number, each in given if each.get("seconds") is not None]
    return [(f"tolerations[{name}].seconds", "nodes here get no taints while pods run") for name in timed]


def _shares(container: PodContainer) -> list[Note]:
    compute = container.fields.get("compute") or {}
    shares = (name for name in _SHARES if compute.get(name))
    return [(f"compute.{name}", "the share is told to the process, which must keep to it itself") for name in shares]
