"""What of a pod's fields a cluster cannot provide, said before its start. Pure; the engine's `review` calls it.

Storage and security that cannot be had fail the workload; what only has less effect is a remark.
"""

from collections.abc import Collection

from fairlead.engines.base import Review
from fairlead.engines.kubernetes.client.resources import MPI
from fairlead.engines.kubernetes.render.pod_security import find_forbidden
from fairlead.model.allowed import Allowed
from fairlead.model.pods.container_fields import given
from fairlead.model.pods.podset import PodSet, RestartPolicy

_ADVISORY = {
    "gpuMemoryLimit": "KAI keeps no limit above the requested GPU memory",
    "gpuPortionLimit": "KAI keeps no limit above the requested portion; pods carry the annotation runai-gpu-limit",
}
#: What `fairlead run` sends.
_HOST_IMAGE = "fairlead.local/host"
_OWN_CLAIM = "a claim is its project's; pods of a cluster mount claims of their own namespace only"


def review(podset: PodSet, allowed: Allowed) -> Review:
    fields = podset.container.fields
    compute = given(fields.compute)
    refused: list[tuple[str, str]] = []
    if podset.container.image == _HOST_IMAGE:
        refused.append(("image", f"{_HOST_IMAGE} stands for the file system of one machine; name an image to pull"))
    if fields.security.uid_gid_source == "fromIdpToken":
        refused.append(("security.uidGidSource", "the token's user and group are not passed on to a cluster yet"))
    refused += find_forbidden(podset.container, allowed)
    advisory = [(f"compute.{name}", why) for name, why in _ADVISORY.items() if compute.get(name)]
    shared = [claim for claim in fields.storage.pvc if claim.data_sharing]
    advisory += [(f"storage.pvc[{claim.name or claim.path}].dataSharing", _OWN_CLAIM) for claim in shared]
    return Review(refused=tuple(refused), advisory=tuple(advisory))


def forbidden_in(podsets: Collection[PodSet], allowed: Allowed, level: str) -> str:
    """Why these pods may not be made where this level of Pod Security is enforced; empty if they may."""
    notes = [note for podset in podsets for note in find_forbidden(podset.container, allowed, level)]
    words = "; ".join(f"{field}: {why}" for field, why in dict.fromkeys(notes))
    return f"It cannot start here: {words}" if words else ""


def refusal_of(podsets: Collection[PodSet], kinds: Collection[str]) -> str:
    """Why these pods cannot be run together by a cluster that has these kinds of objects; empty if they can."""
    launcher = next((podset for podset in podsets if podset.may_exec_in), None)
    if launcher is None:
        return ""
    if MPI.kind not in kinds:
        return (
            f"Its launcher cannot start processes in its {launcher.may_exec_in}s on this cluster: install the MPI "
            f"operator (github.com/kubeflow/mpi-operator, {MPI.kind} {MPI.api}) and submit the workload again"
        )
    if launcher.restart is RestartPolicy.ALWAYS:
        return "restartPolicy is Always, but the MPI operator knows Never and OnFailure only; choose one of them"
    return ""
