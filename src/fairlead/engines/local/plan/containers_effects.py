"""What of a pod's fields is refused or has less effect in a container, told before its start. Pure."""

from collections.abc import Iterator

from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan.container import ARCHIVE, IDS, RUNTIMES
from fairlead.engines.local.plan.identity import ServerRights
from fairlead.model.pods.podset import PodContainer

#: (path of the field, why)
Note = tuple[str, str]


def refusals(name: str, container: PodContainer, rights: ServerRights) -> Iterator[Note]:
    """Fields that cannot be provided in a container here, each with the reason."""
    security = container.fields.get("security") or {}
    is_custom = security.get("uidGidSource") == "custom"
    if security.get("runAsNonRoot") and not is_custom:
        yield "security.runAsNonRoot", "the image's user is not known before the start; give runAsUid"
    if plan_container.is_mapped(name, rights):
        for member in ("runAsUid", "runAsGid"):
            if is_custom and (security.get(member) or 0) >= IDS:
                yield f"security.{member}", f"ids in containers go from 0 to {IDS - 1} here"
    elif rights.is_shared and rights.has_root and not rights.settings.allowed.root_user and not is_custom:
        why = f"{name} would run the image as this machine's root; give runAsUid, use podman, or --allow root-user"
        yield "security.uidGidSource", why
    yield from _refuse_image(name, container, rights)


def _refuse_image(name: str, container: PodContainer, rights: ServerRights) -> Iterator[Note]:
    archive = ARCHIVE.match(container.image)
    if not container.image:
        yield "image", "a container needs one"
    elif archive and not RUNTIMES[name].is_direct and not archive[1].endswith("-archive"):
        yield "image", f"{name} loads archives only: docker-archive:/path or oci-archive:/path"
    elif archive and rights.is_shared and not rights.settings.allowed.has_path(archive["path"]):
        yield "image", "the archive lies outside the folders that --allow host-path names"


def remarks(name: str, container: PodContainer, rights: ServerRights) -> Iterator[Note]:
    """Fields that have less effect in a container here."""
    compute = container.fields.get("compute") or {}
    if compute.get("gpuDevicesRequest"):
        why = "the devices are named to the runtime, which must be set up to hand them in"
        yield "compute.gpuDevicesRequest", why
    if not rights.has_root:
        for member in ("cpuCoreLimit", "cpuMemoryLimit"):
            if compute.get(member) is not None:
                why = "a runtime without root holds it only where control groups of the newer layout are handed to it"
                yield f"compute.{member}", why
