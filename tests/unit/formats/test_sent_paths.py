"""Paths of members as the caller wrote them."""

from typing import Any

import pytest

from fairlead.formats.sent_paths import sent_path
from fairlead.kinds import KINDS
from fairlead.model.dialect import Dialect
from fairlead.model.spec.fields import build

TRAINING, GROUPS = KINDS["training"], KINDS["distributed-inference"]
MOUNT: dict[str, Any] = {"path": "/etc", "mountPath": "/a"}
HOST_PATHS: dict[str, Any] = {
    "storage": {"hostPath": [None, {**MOUNT, "exclude": True}, MOUNT, {**MOUNT, "name": "etc"}]}
}


@pytest.mark.parametrize(
    ("path", "dialect", "want"),
    [
        ("storage.hostPath[0].path", Dialect.REST, "spec.storage.hostPath[2].path"),
        ("storage.hostPath[etc].path", Dialect.REST, "spec.storage.hostPath[3].path"),
        ("storage.hostPath[9].path", Dialect.REST, "spec.storage.hostPath[9].path"),
        ("security.hostIpc", Dialect.REST, "spec.security.hostIpc"),
        ("storage.hostPath[0].path", Dialect.WORKLOAD_YAML, "spec.volumes.items.2.value.path"),
        ("storage.hostPath[etc].path", Dialect.CUSTOM_RESOURCE, "spec.volumes.items.etc.value.path"),
        ("security.hostIpc", Dialect.WORKLOAD_YAML, "spec.hostIpc"),
    ],
    ids=["among those that count", "by name", "unknown", "no item", "key of digits", "key of YAML", "no item in YAML"],
)
def test_items_of_a_training(path: str, dialect: Dialect, want: str) -> None:
    assert sent_path(TRAINING, build(TRAINING.spec, HOST_PATHS), path, dialect) == want


def test_items_whose_key_is_their_name() -> None:
    spec = build(TRAINING.spec, {"environmentVariables": [{"name": "A", "secret": {"name": "s", "key": "k"}}]})
    path = "environmentVariables[0].secret"
    assert sent_path(TRAINING, spec, path, Dialect.WORKLOAD_YAML) == "spec.environment.items.A"


def test_items_of_a_role() -> None:
    leader = {"image": "x", "storage": {"emptyDirVolume": [None, {"path": "/dev", "name": "d"}]}}
    path = "leader.storage.emptyDirVolume[d].path"
    want = "spec.leader.storage.emptyDirVolume[1].path"
    assert sent_path(GROUPS, build(GROUPS.spec, {"leader": leader}), path, Dialect.REST) == want
