"""Which versions of KAI-Scheduler and LeaderWorkerSet work with Fairlead, and what the doctor says about others. Pure.

`doctor.py` calls it with the images of their Deployments. The table in docs/kubernetes.md has the same versions.
"""

import re
from collections.abc import Iterable

import msgspec

from fairlead.model.finding import Finding

Version = tuple[int, int, int]


class Prerequisite(msgspec.Struct, frozen=True):
    """A program in the cluster that Fairlead needs."""

    name: str
    #: Where its chart installs it, and a part of the names of its images.
    namespace: str
    image: str
    #: The oldest that works, and those with which all tests have passed, oldest first.
    oldest: Version
    tested: tuple[Version, ...]


PREREQUISITES = (
    Prerequisite("KAI-Scheduler", "kai-scheduler", "kai-scheduler", (0, 12, 0), ((0, 12, 0),)),
    Prerequisite("LeaderWorkerSet", "lws-system", "lws", (0, 7, 0), ((0, 7, 0), (0, 9, 0))),
)


def judge_release(wanted: Prerequisite, images: Iterable[str]) -> list[Finding]:
    """What its version means, from the images of its programs; nothing if they do not tell a version."""
    versions = sorted({version for image in images if (version := _read_version(wanted, image)) is not None})
    if not versions:
        return []
    what, text = f"Version of {wanted.name}", ", ".join(render_version(one) for one in versions)
    tested = ", ".join(render_version(one) for one in wanted.tested)
    if versions[0] < wanted.oldest:
        advice = f"Upgrade it to {tested}, which is tested"
        return [Finding(what, "missing", f"{text} is older than {render_version(wanted.oldest)}", advice)]
    if any(version[:2] not in {one[:2] for one in wanted.tested} for version in versions):
        advice = f"It should work; tested: {tested}"
        return [Finding(what, "note", f"Fairlead was not tested with {text}", advice)]
    return [Finding(what, "ok", f"{text}, which is tested")]


def render_version(version: Version) -> str:
    return ".".join(str(number) for number in version)


def _read_version(wanted: Prerequisite, image: str) -> Version | None:
    """From a name such as ghcr.io/nvidia/kai-scheduler/binder:v0.12.0; digests do not tell a version."""
    name, _, tag = image.partition("@")[0].rpartition(":")
    numbers = re.match(r"v?(\d+)\.(\d+)\.(\d+)", tag)
    if numbers is None or wanted.image not in name:
        return None
    major, minor, patch = (int(one) for one in numbers.groups())
    return major, minor, patch
