"""Objects of any kind with pod templates: what is refused because no policy could check it."""

from typing import Any

import pytest

from fairlead.formats.foreign.manifests import read_object
from fairlead.model.errors import Invalid

POD = {"containers": [{"name": "main", "image": "busybox"}]}
SPEC: dict[str, Any] = {"groups": [{"replicas": 2, "template": {"spec": POD}}]}
WRONG = [
    pytest.param(
        {"driver": {"podSpec": POD}}, {}, "manifest.spec.driver.podSpec.containers", id="pod in another place"
    ),
    pytest.param({"volumes": [{"hostPath": {"path": "/"}}]}, {}, "manifest.spec.volumes[0].hostPath", id="host path"),
    pytest.param(
        {"sidecar": {"securityContext": {"privileged": True}}}, {}, "securityContext", id="privileged sidecar"
    ),
    pytest.param({"hostNetwork": True}, {}, "manifest.spec.hostNetwork", id="network of the host"),
    pytest.param({"spec": POD, "template": {"spec": POD}}, {}, "manifest.spec.template", id="template beside a decoy"),
    pytest.param({}, {"roleRef": {"name": "admin"}}, "manifest.roleRef", id="binding of a role"),
    pytest.param({}, {"data": {"key": "dmFsdWU="}}, "manifest.data", id="data of a secret"),
    pytest.param({}, {"apiVersion": "g/v1/../../api/v1"}, "manifest.apiVersion", id="path in the version"),
    pytest.param({}, {"apiVersion": "g/v1?watch=1"}, "manifest.apiVersion", id="query in the version"),
]


def manifest(spec: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Group", "metadata": {}, "spec": {**SPEC, **spec}, **members}


@pytest.mark.parametrize(("spec", "members", "want_field"), WRONG)
def test_refused(spec: dict[str, Any], members: dict[str, Any], want_field: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_object(manifest(spec, **members))
    assert want_field in " ".join(issue.field for issue in refused.value.issues)


def test_what_is_off_counts_as_not_given() -> None:
    [read] = read_object(manifest({"hostNetwork": False, "securityContext": {}, "containers": None}))
    assert read.spec["image"] == "busybox"
