"""What of a pod's fields a cluster cannot provide, said before its start. Pure; the engine's `review` calls it.

Storage and security that cannot be had fail the workload; what only has less effect is a remark.
"""

from fairlead.engines.base import Review
from fairlead.model.podset import PodSet

_ADVISORY = {
    "gpuMemoryLimit": "KAI keeps no limit above the requested GPU memory",
    "gpuPortionLimit": "KAI keeps no limit above the requested portion; pods carry the annotation runai-gpu-limit",
}
_OWN_CLAIM = "a claim is its project's; pods of a cluster mount claims of their own namespace only"


def review(podset: PodSet) -> Review:
    fields = podset.container.fields
    compute = fields.get("compute") or {}
    refused: list[tuple[str, str]] = []
    if (fields.get("security") or {}).get("uidGidSource") == "fromIdpToken":
        refused.append(("security.uidGidSource", "the token's user and group are not passed on to a cluster yet"))
    advisory = [(f"compute.{name}", why) for name, why in _ADVISORY.items() if compute.get(name)]
    shared = [item for item in (fields.get("storage") or {}).get("pvc") or () if item.get("dataSharing")]
    advisory += [(f"storage.pvc[{item.get('name') or item['path']}].dataSharing", _OWN_CLAIM) for item in shared]
    if podset.commands:
        words = f"nothing starts programs in its {podset.commands}s on a cluster yet; the image must bring its own way"
        advisory.append(("distributedFramework", words))
    return Review(refused=tuple(refused), advisory=tuple(advisory))
