"""Which objects a spec names, and what is said of those that do not exist."""

from typing import Any

import msgspec
import pytest

from fairlead.admission.names import missing_names, names_used
from fairlead.kinds import KINDS
from fairlead.model.records.assets import Reference
from fairlead.model.spec.fields import build
from fairlead.model.spec.references import NamedReference


def used(spec: dict[str, Any]) -> list[NamedReference]:
    return names_used(msgspec.convert(spec, KINDS["training"].spec))


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"image": "x"}, []),
        (
            {"environmentVariables": [{"name": "A", "secret": {"name": "s", "key": "k"}}]},
            [("secret", "s", "spec.environmentVariables[0].secret", "k")],
        ),
        ({"environmentVariables": [{"name": "A", "exclude": True, "secret": {"name": "s", "key": "k"}}]}, []),
        (
            {"environmentVariables": [{"name": "A", "userCredential": {"name": "c", "key": "k"}}]},
            [("user credential", "c", "spec.environmentVariables[0].userCredential", "k")],
        ),
        ({"imagePullSecrets": [{"name": "r"}]}, [("secret", "r", "spec.imagePullSecrets[0].name", "")]),
        (
            {"imagePullSecrets": [{"name": "r", "userCredential": True}]},
            [("user credential", "r", "spec.imagePullSecrets[0].name", "")],
        ),
        (
            {"storage": {"pvc": [{"path": "/a", "existingPvc": True, "claimName": "c"}]}},
            [("claim", "c", "spec.storage.pvc[0].claimName", "")],
        ),
        ({"storage": {"pvc": [{"path": "/a", "claimName": "c", "claimInfo": {"size": "1G"}}]}}, []),
        (
            {"storage": {"pvc": [{"path": "/a", "claimInfo": {"size": "1G", "storageClass": "fast"}}]}},
            [("storage class", "fast", "spec.storage.pvc[0].claimInfo.storageClass", "")],
        ),
        (
            {"storage": {"secretVolume": [{"secret": "s", "mountPath": "/s"}]}},
            [("secret", "s", "spec.storage.secretVolume[0].secret", "")],
        ),
        (
            {"storage": {"configMapVolume": [{"configMap": "m", "mountPath": "/m"}]}},
            [("config map", "m", "spec.storage.configMapVolume[0].configMap", "")],
        ),
        (
            {"storage": {"git": [{"repository": "r", "path": "/g", "secretRef": {"name": "s"}}]}},
            [("secret", "s", "spec.storage.git[0].secretRef.name", "")],
        ),
        (
            {"storage": {"s3": [{"bucket": "b", "path": "/b", "accessKeySecret": "s"}]}},
            [("secret", "s", "spec.storage.s3[0].accessKeySecret", "")],
        ),
        (
            {"storage": {"dataVolume": [{"id": "5D7C2C2A-0000-4000-8000-000000000000", "mountPath": "/d"}]}},
            [("data volume", "5d7c2c2a-0000-4000-8000-000000000000", "spec.storage.dataVolume[0].id", "")],
        ),
    ],
)
def test_what_is_used(spec: dict[str, Any], want: list[tuple[str, str, str, str]]) -> None:
    assert [(use.reference, use.name, use.path, use.key) for use in used(spec)] == want


@pytest.mark.parametrize(
    ("use", "existing", "want"),
    [
        (NamedReference(Reference.SECRET, "token", "p", "k"), {"token": frozenset({"k"})}, None),
        (
            NamedReference(Reference.SECRET, "token", "p"),
            {},
            "there is no secret 'token' here; this project has no secret yet",
        ),
        (
            NamedReference(Reference.SECRET, "tokn", "p"),
            {"token": None},
            "there is no secret 'tokn' here; did you mean token?",
        ),
        (
            NamedReference(Reference.SECRET, "a", "p"),
            {"genericsecret-a": None, "z": None},
            "there is no secret 'a' here; did you mean genericsecret-a?",
        ),
        (
            NamedReference(Reference.SECRET, "qqq", "p"),
            {"b": None, "a": None},
            "there is no secret 'qqq' here; there are a, b",
        ),
        (
            NamedReference(Reference.SECRET, "token", "p", "kez"),
            {"token": frozenset({"key"})},
            "secret 'token' has no key 'kez'; did you mean key?",
        ),
    ],
)
def test_what_is_missing(use: NamedReference, existing: dict[str, Any], want: str | None) -> None:
    found = [issue.details for _, issue in missing_names([use], {Reference.SECRET: existing})]
    assert found == ([] if want is None else [want])


@pytest.mark.parametrize(("key", "want"), [("a", []), ("b", ["spec.storage.configMapVolume[0].subPath"])])
def test_a_sub_path_must_be_a_key_of_the_config_map(key: str, want: list[str]) -> None:
    volume = {"configMap": "c", "mountPath": "/c", "subPath": key}
    spec = build(KINDS["training"].spec, {"storage": {"configMapVolume": [volume]}})
    existing = {Reference.CONFIG_MAP: {"c": frozenset({"a"})}}
    assert [issue.field for _, issue in missing_names(names_used(spec), existing)] == want


@pytest.mark.parametrize(("mine", "want"), [([], "you have none"), (["mine"], "yours are mine")])
def test_a_credential_of_another_user_is_named_as_such(mine: list[str], want: str) -> None:
    variable = {"name": "A", "userCredential": {"name": "of-ann", "key": "k"}}
    spec = build(KINDS["training"].spec, {"environmentVariables": [variable]})
    existing = {Reference.USER_CREDENTIAL: dict.fromkeys(mine, frozenset({"k"}))}
    [(_, issue)] = missing_names(names_used(spec), existing)
    assert issue.details.endswith(f"; only its creator can use a user credential, and {want}")
