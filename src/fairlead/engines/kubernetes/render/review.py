"""Fields of a pod that the cluster cannot provide, known before its start. Pure.

Storage and security that the cluster cannot provide fail the workload; fields with less effect are only noted.
"""

from collections.abc import Collection

from fairlead.engines.base import Review
from fairlead.engines.kubernetes.client.resources import MPI
from fairlead.engines.kubernetes.render.labels import PROJECT_LABEL, WORKLOAD_LABEL, is_deciding
from fairlead.engines.kubernetes.render.pod_security import find_forbidden
from fairlead.engines.kubernetes.render.runners import find_array_refusal
from fairlead.model import array
from fairlead.model.allowed import Allowed
from fairlead.model.pods.container_fields import given
from fairlead.model.pods.podset import PodSet, RestartPolicy

_ADVISORY = {
    "gpuMemoryLimit": "KAI enforces no limit above the requested GPU memory",
    "gpuPortionLimit": "KAI enforces no limit above the requested portion; pods have the annotation runai-gpu-limit",
}
#: The image of `fairlead run`.
_HOST_IMAGE = "fairlead.local/host"
_DROPPED = "dropped: it would change what was decided about the pods, so only the server sets it"
_REPLACED = "replaced: pods of every workload carry the server's value"
_OWN_LABELS = (WORKLOAD_LABEL, PROJECT_LABEL)
_OWN_CLAIM = "a claim belongs to its project; pods can mount claims of their own namespace only"


def review(podset: PodSet, allowed: Allowed) -> Review:
    fields = podset.container.fields
    compute = given(fields.compute)
    refused: list[tuple[str, str]] = []
    if why := find_array_refusal(podset):
        refused.append(("annotations", f"{array.ANNOTATION}: {why}"))
    if podset.container.image == _HOST_IMAGE:
        refused.append(("image", f"{_HOST_IMAGE} is the file system of one machine; choose an image to pull"))
    if fields.security.uid_gid_source == "fromIdpToken":
        refused.append(("security.uidGidSource", "the user and group of the token are not passed to a cluster yet"))
    refused += find_forbidden(podset.container, allowed)
    advisory = list(fields.security.ids_without_effect)
    advisory += [(f"compute.{name}", why) for name, why in _ADVISORY.items() if compute.get(name)]
    advisory += [(f"labels[{one.name}]", _REPLACED) for one in fields.labels if one.name in _OWN_LABELS]
    pairs = (("labels", fields.labels), ("annotations", fields.annotations))
    advisory += [(f"{member}[{one.name}]", _DROPPED) for member, ones in pairs for one in ones if is_deciding(one.name)]
    shared = [claim for claim in fields.storage.pvc if claim.data_sharing]
    advisory += [(f"storage.pvc[{claim.name or claim.path}].dataSharing", _OWN_CLAIM) for claim in shared]
    return Review(refused=tuple(refused), advisory=tuple(advisory))


def forbidden_in(podsets: Collection[PodSet], allowed: Allowed, level: str) -> str:
    """Why a namespace that enforces this Pod Security level refuses these pods; empty if it does not."""
    notes = [note for podset in podsets for note in find_forbidden(podset.container, allowed, level)]
    message = "; ".join(f"{field}: {why}" for field, why in dict.fromkeys(notes))
    return f"It cannot start here: {message}" if message else ""


def refusal_of(podsets: Collection[PodSet], kinds: Collection[str]) -> str:
    """Why a cluster with these kinds of controllers cannot run these pods together; empty if it can."""
    launcher = next((podset for podset in podsets if podset.may_exec_in), None)
    if launcher is None:
        return ""
    if MPI.kind not in kinds:
        return (
            f"Its launcher cannot start processes in its {launcher.may_exec_in}s on this cluster; install the MPI "
            f"operator (github.com/kubeflow/mpi-operator, {MPI.kind} {MPI.api}) and submit the workload again"
        )
    if launcher.restart is RestartPolicy.ALWAYS:
        return "restartPolicy is Always, but the MPI operator accepts only Never and OnFailure; choose one of them"
    return ""
