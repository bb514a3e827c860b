"""What of a pod's fields a cluster cannot provide, said before its start. Pure; the engine's `review` calls it.

Storage and security that cannot be had fail the workload; what only has less effect is a remark.
"""

from fairlead.engines.base import Review
from fairlead.model.podset import PodSet

_REFUSED = {
    "s3": "buckets cannot be mounted into pods of a cluster yet; fetch them in the command, or use a claim",
}
_ADVISORY = {
    "gpuMemoryLimit": "KAI keeps no limit above the requested GPU memory",
    "gpuPortionLimit": "KAI keeps no limit above the requested portion; pods carry the annotation runai-gpu-limit",
}


def review(podset: PodSet) -> Review:
    fields = podset.container.fields
    storage, compute = fields.get("storage") or {}, fields.get("compute") or {}
    refused = [(f"storage.{name}", why) for name, why in _REFUSED.items() if storage.get(name)]
    if (fields.get("security") or {}).get("uidGidSource") == "fromIdpToken":
        refused.append(("security.uidGidSource", "the token's user and group are not passed on to a cluster yet"))
    advisory = [(f"compute.{name}", why) for name, why in _ADVISORY.items() if compute.get(name)]
    if podset.commands:
        words = f"nothing starts programs in its {podset.commands}s on a cluster yet; the image must bring its own way"
        advisory.append(("distributedFramework", words))
    return Review(refused=tuple(refused), advisory=tuple(advisory))
