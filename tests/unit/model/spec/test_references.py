"""Every object that a spec or a pod names is found through the declarations of the fields."""

from typing import Any

import msgspec
import pytest

from fairlead.admission import assets as admission_assets
from fairlead.control.assets.kinds import ASSET_KINDS
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import fields_of
from fairlead.model.spec.references import pod_references, references

VOLUME = "5D7C2C2A-0000-4000-8000-000000000000"
SPEC: dict[str, Any] = {
    "image": "x",
    "environmentVariables": [
        {"name": "A", "secret": {"name": "s", "key": "k"}},
        {"name": "B", "configMap": {"name": "m", "key": "k"}},
        {"name": "C", "value": "plain"},
        {"name": "D", "userCredential": {"name": "c", "key": "k"}},
    ],
    "imagePullSecrets": [{"name": "r"}, {"name": "own", "userCredential": True}],
    "storage": {
        "pvc": [
            {"name": "old", "path": "/a", "existingPvc": True, "claimName": "c"},
            {"path": "/b", "claimName": "new", "claimInfo": {"size": "1G", "storageClass": "fast"}},
        ],
        "configMapVolume": [{"configMap": "files", "mountPath": "/m"}],
        "secretVolume": [{"secret": "keys", "mountPath": "/s"}],
        "dataVolume": [{"id": VOLUME, "mountPath": "/d"}],
        "git": [{"repository": "r", "path": "/g", "secretRef": {"name": "g"}}],
        "s3": [{"bucket": "b", "path": "/b3", "accessKeySecret": "bucket"}],
    },
}
WANT = [
    ("secret", "s", "environmentVariables[A].secret", "k"),
    ("config map", "m", "environmentVariables[B].configMap", "k"),
    ("user credential", "c", "environmentVariables[D].userCredential", "k"),
    ("secret", "r", "imagePullSecrets[r].name", ""),
    ("user credential", "own", "imagePullSecrets[own].name", ""),
    ("claim", "c", "storage.pvc[old].claimName", ""),
    ("claim", "new", "storage.pvc[1].claimName", ""),
    ("storage class", "fast", "storage.pvc[1].claimInfo.storageClass", ""),
    ("config map", "files", "storage.configMapVolume[0].configMap", ""),
    ("secret", "keys", "storage.secretVolume[0].secret", ""),
    ("data volume", VOLUME.lower(), f"storage.dataVolume[{VOLUME}].id", ""),
    ("secret", "g", "storage.git[0].secretRef.name", ""),
    ("secret", "bucket", "storage.s3[0].accessKeySecret", ""),
]


def spec_of(plain: dict[str, Any]) -> Any:
    return msgspec.convert(plain, KINDS["training"].spec)


def test_a_pod_names_what_its_spec_names() -> None:
    (podset,) = KINDS["training"].podsets(spec_of(SPEC))
    found = list(pod_references(podset.container))
    assert [(use.reference, use.name, use.path, use.key) for use in found] == WANT
    of_spec = {(use.reference, use.name, use.key) for use in references(spec_of(SPEC))}
    assert of_spec == {(reference, name, key) for reference, name, _, key in WANT}


def test_which_objects_may_be_created_and_which_are_shown_live() -> None:
    found = list(references(spec_of(SPEC)))
    assert [use.name for use in found if use.may_be_created] == ["new"]
    assert [use.name for use in found if use.is_live] == ["files", "keys"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"storage": {"secretVolume": [{"secret": "s", "mountPath": "/s", "exclude": True}, None]}}, []),
        # Only the first source of a variable counts, and a value is the first.
        ({"environmentVariables": [{"name": "A", "value": "", "secret": {"name": "s", "key": "k"}}]}, []),
        (
            {
                "environmentVariables": [
                    {"name": "A", "configMap": {"name": "m", "key": "k"}, "secret": {"name": "s", "key": "k"}}
                ]
            },
            ["s"],
        ),
        # What a new claim would be like does not count for one that exists.
        (
            {
                "storage": {
                    "pvc": [
                        {"path": "/a", "existingPvc": True, "claimName": "c", "claimInfo": {"storageClass": "fast"}}
                    ]
                }
            },
            ["c"],
        ),
    ],
)
def test_what_does_not_count(spec: dict[str, Any], want: list[str]) -> None:
    assert [use.name for use in references(spec_of(spec))] == want


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.key)
def test_the_pods_of_every_role_are_walked(kind: Any) -> None:
    variable = {"name": "A", "secret": {"name": "s", "key": "k"}}
    roles = [field.rest for field in fields_of(kind.spec) if field.about.role]
    variables = {"environmentVariables": [variable]}
    plain: dict[str, Any] = dict.fromkeys(roles, variables) or variables
    spec = msgspec.convert(plain, kind.spec)
    want = [f"spec.{role}.environmentVariables[0].secret" for role in roles] or ["spec.environmentVariables[0].secret"]
    assert [use.path for use in references(spec)] == want


def test_rendering_assets_knows_every_declared_credential() -> None:
    declared = {field.rest for kind in ASSET_KINDS for field in kind.credential_fields}
    assert declared == set(admission_assets._CREDENTIALS)
