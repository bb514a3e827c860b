"""A container's volumes and credentials as its runtime takes them: options of its command, one file. Pure.

Called by `containers.py`. Where they can be staged, every volume is prepared at a place of the attempt's own folder
first (`staging.py`), and the runtime binds that; elsewhere it is told the paths themselves.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from fairlead.model.errors import Refused

Volume = dict[str, Any]


def render(volumes: Sequence[Volume], folder: str, *, staged: bool) -> tuple[list[Volume], list[str]]:
    """The volumes, each with its place where it is staged, and the options that name them to the runtime."""
    placed, options = [], []
    # Outer ones first, as the runtime mounts them in this order.
    for number, volume in enumerate(sorted(volumes, key=lambda volume: str(volume["at"]))):
        if volume["kind"] == "memory" and not volume.get("files"):
            options.append(_render_memory(volume))
            continue
        place = f"{folder}/volume{number}" if staged else volume["source"]
        placed.append({**volume, "place": place})
        options.append(_render_bind(volume, place))
    return placed, options


def _render_bind(volume: Volume, place: str) -> str:
    ways = ["ro" if volume.get("read_only") else "rw", "rslave" if volume.get("follows") else "rprivate"]
    return f"--volume={place}:{volume['at']}:{','.join(ways)}"


def _render_memory(volume: Volume) -> str:
    size = [f"tmpfs-size={volume['size']}"] if volume.get("size") is not None else []
    return "--mount=" + ",".join(["type=tmpfs", f"destination={volume['at']}", f"tmpfs-mode={volume['mode']:o}", *size])


def merge_registries(texts: Iterable[str]) -> str:
    """One configuration out of several; of two for the same registry the later one counts."""
    merged: dict[str, Any] = {}
    for text in texts:
        try:
            merged |= json.loads(text)["auths"]
        except (ValueError, KeyError, TypeError):
            raise Refused("imagePullSecrets: a secret does not hold the configuration of a registry") from None
    return json.dumps({"auths": merged})
