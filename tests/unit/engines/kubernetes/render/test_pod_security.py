"""What pods may do on a cluster: what is refused, what lifts it, and that all that is rendered passes its level."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.pod_security import find_forbidden
from fairlead.engines.kubernetes.render.review import forbidden_in, review
from fairlead.engines.kubernetes.render.workload import kinds_for, render_objects
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.model.allowed import Allowed, parse_allowed
from fairlead.model.pods.container_fields import given
from fairlead.model.pods.podset import PodSet
from fairlead.model.spec.fields import build
from tests.builders import container_fields
from tests.unit.engines.golden_place import GOLDEN_PLACE
from tests.unit.engines.pod_security import pods_in, violations

REQUESTS = sorted((Path(__file__).parents[4] / "golden").glob("*/*.request.json"))
APPARMOR = "container.apparmor.security.beta.kubernetes.io/main"
#: Fields that reach out of a pod: (spec, path, what is said, the flag that lifts it).
REACHING: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "host path": (
        {"storage": {"hostPath": [{"path": "/", "mountPath": "/h", "readOnly": False}]}},
        "storage.hostPath[0].path",
        "'/' is the node's own",
        "host-path=/",
    ),
    "below another folder": (
        {"storage": {"hostPath": [{"name": "x", "path": "/database", "mountPath": "/h"}]}},
        "storage.hostPath[x].path",
        "'/database' is the node's own",
        "host-path=/database",
    ),
    "network": ({"security": {"hostNetwork": True}}, "security.hostNetwork", "node's network", "host-namespaces"),
    "ipc": ({"security": {"hostIpc": True}}, "security.hostIpc", "inter-process", "host-namespaces"),
    "capability": (
        {"security": {"capabilities": ["SYS_ADMIN", "CHOWN"]}},
        "security.capabilities",
        "SYS_ADMIN",
        "capability=SYS_ADMIN",
    ),
    "no filter": (
        {"security": {"seccompProfileType": "Unconfined"}},
        "security.seccompProfileType",
        "filter",
        "unconfined",
    ),
    "no profile": (
        {"annotations": [{"name": APPARMOR, "value": "unconfined"}]},
        f"annotations[{APPARMOR}]",
        "AppArmor",
        "unconfined",
    ),
}
#: What only the strictest level forbids.
WEAKENING: dict[str, tuple[dict[str, Any], str]] = {
    "root's id": ({"security": {"uidGidSource": "custom", "runAsUid": 0}}, "security.runAsUid"),
    "gaining rights": ({"security": {"allowPrivilegeEscalation": True}}, "security.allowPrivilegeEscalation"),
    "keeping capabilities": ({"security": {"dropAllCapabilities": False}}, "security.dropAllCapabilities"),
    "a harmless capability": ({"security": {"capabilities": ["CHOWN"]}}, "security.capabilities"),
    "an export": ({"storage": {"nfs": [{"server": "s", "path": "/", "mountPath": "/n"}]}}, "storage.nfs[0]"),
}
ONES = [pytest.param(*case, id=title) for title, case in REACHING.items()]


def podset(**spec: Any) -> PodSet:
    kind = KINDS["training"]
    [found] = kind.podsets(build(kind.spec, {"image": "x", **spec}))
    return found


def fields(notes: Any) -> list[str]:
    return [field for field, _ in notes]


@pytest.mark.parametrize(("spec", "field", "words", "flag"), ONES)
def test_what_reaches_out_of_a_pod_is_refused_unless_allowed(
    spec: dict[str, Any], field: str, words: str, flag: str
) -> None:
    nearly = Allowed(host_paths=("/data",), capabilities=("NET_ADMIN",))
    [(found, why)] = review(podset(**spec), nearly).refused
    assert found == field
    assert words in why
    assert why.endswith(f"start the server with --allow {flag} to permit it")
    assert review(podset(**spec), parse_allowed((flag,))).refused == ()


@pytest.mark.parametrize("level", ["baseline", "restricted"])
@pytest.mark.parametrize(("spec", "field", "words", "flag"), ONES)
def test_what_a_namespace_enforces_nothing_lifts(
    spec: dict[str, Any], field: str, words: str, flag: str, level: str
) -> None:
    found = forbidden_in((podset(**spec),), parse_allowed((flag,)), level)
    assert f"{field}: " in found
    assert words in found
    assert f"the level {level} of Pod Security" in found
    assert "--allow" not in found


@pytest.mark.parametrize(("spec", "field"), WEAKENING.values(), ids=WEAKENING.keys())
def test_what_only_the_strictest_level_forbids(spec: dict[str, Any], field: str) -> None:
    container = podset(**spec).container
    assert fields(find_forbidden(container, Allowed(), "restricted")) == [field]
    assert find_forbidden(container, Allowed(), "baseline") == find_forbidden(container, Allowed()) == []


def test_folders_below_an_allowed_one() -> None:
    allowed = Allowed(host_paths=("/data/",))
    for path, is_allowed in (("/data", True), ("/data/x/", True), ("/database", False), ("/data/../etc", False)):
        assert allowed.has_path(path) is is_allowed, path


def submitted(path: Path) -> tuple[PodSet, ...]:
    kind = KINDS[path.parent.name]
    return kind.podsets(read_submission(kind, path.read_bytes()).spec)


def without(podsets: tuple[PodSet, ...], level: str) -> tuple[PodSet, ...]:
    """The same pods with nothing in them that the level forbids."""
    left = []
    for one in podsets:
        plain: dict[str, Any] = dict(given(one.container.fields))
        for field in fields(find_forbidden(one.container, Allowed(), level)):
            group, member = field.split("[")[0].split(".")[:2]
            del plain[group][member]
        container = msgspec.structs.replace(one.container, fields=container_fields(plain))
        left.append(msgspec.structs.replace(one, container=container))
    return tuple(left)


@pytest.mark.parametrize("level", ["", "baseline", "restricted"])
@pytest.mark.parametrize("operated", [False, True], ids=["by ourselves", "by operators"])
@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_every_pod_passes_its_level(path: Path, operated: bool, level: str) -> None:
    """And what is refused would not have passed: the rules of the standard stand in `pod_security.py` once more."""
    given = submitted(path)
    for podsets in (given, without(given, level)):
        kinds = frozenset(resource.kind for resource in kinds_for(podsets, level)) if operated else frozenset()
        place = msgspec.structs.replace(GOLDEN_PLACE, level=level, launch=LaunchChoices(kinds=kinds))
        rendered = render_objects(place, podsets)
        pods = list(pods_in(rendered.runners + rendered.pods(place)))
        assert pods
        broken = {words for metadata, pod in pods for words in violations(metadata, pod, level or "baseline")}
        assert bool(broken) == bool(forbidden_in(podsets, Allowed(), level)), broken
    assert not broken


def test_helper_containers_run_as_nobody_unless_the_pod_has_a_user() -> None:
    place = msgspec.structs.replace(GOLDEN_PLACE, level="restricted")
    storage = {"git": [{"repository": "https://x/y", "path": "/g"}], "s3": [{"bucket": "b", "path": "/b"}]}
    for security, user in (({}, 65534), ({"uidGidSource": "custom", "runAsUid": 1000}, None)):
        [job] = render_objects(place, (podset(storage=storage, security=security),)).runners
        pod = job["spec"]["template"]["spec"]
        ours = [one["securityContext"].get("runAsUser") for one in pod["initContainers"]]
        assert ours == [user] * 3
        assert "runAsUser" not in pod["containers"][0]["securityContext"]


def test_objects_say_what_they_were_begun_with() -> None:
    """So that they stay as they are when the namespace enforces something else later."""
    for level in ("restricted", ""):
        place = msgspec.structs.replace(GOLDEN_PLACE, level=level)
        [job] = render_objects(place, (podset(),)).runners
        assert launch_choices_of(objects.Metadata(annotations=job["metadata"].get("annotations", {}))).level == level


def test_an_operator_whose_own_container_is_not_let_in_is_passed_over() -> None:
    kind = KINDS["distributed-training"]
    podsets = kind.podsets(build(kind.spec, {"image": "x", "distributedFramework": "PyTorch"}))
    assert [resource.kind for resource in kinds_for(podsets)] == ["PyTorchJob"]
    assert kinds_for(podsets, "restricted") == ()
