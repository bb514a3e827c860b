"""Which security fields are refused, by whom the server is and what its operator allows."""

from typing import Any

import pytest

from fairlead.engines.local.plan.identity import (
    PodRights,
    ServerRights,
    decide_rights,
    find_refused_fields,
    parse_groups,
    with_account,
)
from fairlead.engines.local.settings import NOBODY, Identity, LocalSettings
from fairlead.model.allowed import Allowed
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import ContainerSecurity
from tests.builders import container_fields

ADA = Identity(uid=1000, gid=1000, login="ada", home="/home/ada", groups=(1000, 27))
ROOT = Identity(uid=0, gid=0, login="root", home="/root")
CUSTOM = {"uidGidSource": "custom"}


def rights(server: Identity, *, personal: bool = False, allowed: Allowed | None = None) -> ServerRights:
    settings = LocalSettings(
        data_dir="/data",
        owner=server if personal else None,
        run_as=NOBODY if server.uid == 0 else server,
        allowed=allowed or Allowed(),
    )
    return ServerRights(
        settings=settings,
        server_uid=server.uid,
        is_user=lambda uid: uid in (0, 1, 1000),
        is_group=lambda gid: gid in (0, 6, 27, 1000),
    )


SHARED_ROOT = rights(ROOT)
SHARED = rights(ADA)
PERSONAL_ROOT = rights(ROOT, personal=True)
PERSONAL = rights(ADA, personal=True)
OPEN = rights(
    ROOT,
    allowed=Allowed(root_user=True, machine_users=True, host_namespaces=True, capabilities=("NET_ADMIN",)),
)


def secured(rest: dict[str, Any]) -> ContainerSecurity:
    return container_fields({"security": rest}).security


@pytest.mark.parametrize(
    ("given", "security", "want"),
    [
        pytest.param(SHARED_ROOT, {**CUSTOM, "runAsUid": 0}, "runAsUid", id="uid 0"),
        pytest.param(SHARED_ROOT, {**CUSTOM, "runAsUid": 1000}, "runAsUid", id="somebody's uid"),
        pytest.param(SHARED_ROOT, {**CUSTOM, "runAsUid": 61_000}, "", id="a free uid"),
        pytest.param(SHARED_ROOT, {**CUSTOM, "runAsUid": 65_534}, "", id="the uid that it has anyway"),
        pytest.param(SHARED_ROOT, {**CUSTOM, "supplementalGroups": "6"}, "supplementalGroups", id="the disk group"),
        pytest.param(OPEN, {**CUSTOM, "runAsUid": 0, "supplementalGroups": "6,0"}, "", id="all allowed"),
        pytest.param(SHARED, {**CUSTOM, "runAsUid": 61_000}, "runAsUid", id="without root another uid"),
        pytest.param(PERSONAL, {**CUSTOM, "runAsUid": 1000, "runAsGid": 1000}, "", id="without root its own ids"),
        pytest.param(PERSONAL, {**CUSTOM, "supplementalGroups": "27"}, "", id="a group that it has"),
        pytest.param(PERSONAL, {**CUSTOM, "supplementalGroups": ""}, "", id="the image's groups"),
        pytest.param(PERSONAL_ROOT, {**CUSTOM, "runAsUid": 1000}, "", id="the owner root becomes somebody"),
        pytest.param(SHARED_ROOT, {"uidGidSource": "fromIdpToken"}, "uidGidSource", id="no identity provider"),
        pytest.param(PERSONAL, {"uidGidSource": "fromIdpToken"}, "", id="the owner is who asks"),
        pytest.param(PERSONAL_ROOT, {"runAsNonRoot": True}, "runAsNonRoot", id="the owner is root"),
        pytest.param(SHARED_ROOT, {"runAsNonRoot": True}, "", id="pods are not root anyway"),
        pytest.param(SHARED_ROOT, {"capabilities": ["NET_ADMIN"]}, "capabilities", id="not allowed"),
        pytest.param(OPEN, {"capabilities": ["NET_ADMIN"]}, "", id="allowed"),
        pytest.param(OPEN, {"capabilities": ["NET_ADMIN", "SYS_TIME"]}, "capabilities", id="one allowed, one not"),
        pytest.param(PERSONAL, {"capabilities": ["KILL"]}, "capabilities", id="none to give"),
        pytest.param(PERSONAL_ROOT, {"capabilities": ["KILL"]}, "", id="the owner's own"),
        pytest.param(PERSONAL, {"dropAllCapabilities": True}, "dropAllCapabilities", id="could be gained again"),
        pytest.param(
            PERSONAL, {"dropAllCapabilities": True, "allowPrivilegeEscalation": False}, "", id="cannot be gained again"
        ),
        pytest.param(SHARED_ROOT, {"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation", id="to root"),
        pytest.param(SHARED, {"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation", id="impossible"),
        pytest.param(OPEN, {"allowPrivilegeEscalation": True}, "", id="root is allowed"),
        pytest.param(
            PERSONAL,
            {"allowPrivilegeEscalation": True, "seccompProfileType": "RuntimeDefault"},
            "allowPrivilegeEscalation",
            id="a filter without root",
        ),
        pytest.param(SHARED, {"seccompProfileType": "RuntimeDefault"}, "", id="a filter"),
        pytest.param(SHARED, {"seccompProfileType": "Localhost"}, "seccompProfileType", id="a profile by name"),
        pytest.param(SHARED, {"hostIpc": True}, "hostIpc", id="the machine's communication"),
        pytest.param(SHARED, {"hostNetwork": True}, "hostNetwork", id="the machine's network"),
        pytest.param(OPEN, {"hostIpc": True, "hostNetwork": True}, "", id="host namespaces allowed"),
        pytest.param(PERSONAL, {"hostIpc": True, "hostNetwork": True}, "", id="the owner's machine"),
    ],
)
def test_refusals(given: ServerRights, security: dict[str, Any], want: str) -> None:
    found = find_refused_fields(secured(security), given)
    assert [path for path, _ in found] == ([f"security.{want}"] if want else [])
    assert all(why for _, why in found)


def test_nothing_is_refused_where_nothing_is_asked() -> None:
    for given in (SHARED_ROOT, SHARED, PERSONAL_ROOT, PERSONAL, OPEN):
        assert (
            find_refused_fields(
                secured({"uidGidSource": "fromTheImage", "hostIpc": False, "runAsNonRoot": False}), given
            )
            == []
        )


def test_without_isolation_the_root_cannot_be_read_only() -> None:
    given = rights(ROOT, allowed=Allowed(no_isolation=True))
    assert [path for path, _ in find_refused_fields(secured({"readOnlyRootFilesystem": True}), given)] == [
        "security.readOnlyRootFilesystem"
    ]


def test_a_machine_without_filters() -> None:
    given = ServerRights(settings=SHARED.settings, server_uid=1000, is_user=bool, is_group=bool, has_seccomp=False)
    assert [path for path, _ in find_refused_fields(secured({"seccompProfileType": "RuntimeDefault"}), given)] == [
        "security.seccompProfileType"
    ]


def test_ids_without_the_source_custom_are_remarked_upon() -> None:
    security = secured({"uidGidSource": "fromTheImage", "runAsUid": 5, "supplementalGroups": "6"})
    notes = dict(security.ids_without_effect)
    assert list(notes) == ["security.runAsUid", "security.supplementalGroups"]
    assert notes["security.runAsUid"] == "it has an effect with uidGidSource custom only"
    assert secured({**CUSTOM, "runAsUid": 5}).ids_without_effect == ()
    assert secured({"supplementalGroups": ""}).ids_without_effect == ()


def test_an_empty_list_of_groups_means_those_of_the_image() -> None:
    kept = decided(SHARED_ROOT, **CUSTOM, runAsGid=61_001).user.groups
    assert decided(SHARED_ROOT, **CUSTOM, runAsGid=61_001, supplementalGroups="").user.groups == kept


def decided(given: ServerRights, **security: Any) -> PodRights:
    return decide_rights(secured(security), given)


def test_no_new_privileges() -> None:
    assert decided(SHARED_ROOT).no_new_privileges
    assert not decided(PERSONAL).no_new_privileges
    assert decided(PERSONAL, allowPrivilegeEscalation=False).no_new_privileges
    assert decided(PERSONAL, seccompProfileType="RuntimeDefault").no_new_privileges
    assert not decided(PERSONAL_ROOT, seccompProfileType="RuntimeDefault").no_new_privileges
    assert not decided(OPEN, allowPrivilegeEscalation=True).no_new_privileges


def test_bounds() -> None:
    assert decided(PERSONAL_ROOT).bounding is None
    assert decided(PERSONAL, dropAllCapabilities=True).bounding is None
    assert decided(PERSONAL_ROOT, dropAllCapabilities=True).bounding == frozenset()
    assert "SYS_ADMIN" not in (decided(SHARED_ROOT).bounding or ())
    assert "NET_ADMIN" in (decided(OPEN, capabilities=["NET_ADMIN"]).bounding or ())


def test_another_user_has_neither_the_owners_groups_nor_home() -> None:
    user = decided(PERSONAL_ROOT, **CUSTOM, runAsUid=1000).user
    assert (user.uid, user.gid, user.groups, user.home) == (1000, 0, (), "/")
    user = decided(SHARED_ROOT, **CUSTOM, runAsUid=61_000, runAsGid=61_001, supplementalGroups="5, 6").user
    assert (user.uid, user.gid, user.groups, user.home) == (61_000, 61_001, (5, 6), NOBODY.home)


@pytest.mark.parametrize("text", ["a", "1,b", "-1", "4294967295", "1.5"])
def test_texts_that_are_not_groups(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_groups(text)


@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        pytest.param("no-such-account", SHARED_ROOT, "has no account", id="unknown"),
        pytest.param("root", SHARED_ROOT, "belongs to the system", id="root"),
        pytest.param("daemon", SHARED_ROOT, "belongs to the system", id="of-the-system"),
        pytest.param("daemon", SHARED, "not root", id="without-root"),
    ],
)
def test_accounts_as_which_no_pod_runs(name: str, given: ServerRights, want: str) -> None:
    with pytest.raises(Refused, match=want):
        with_account(given, name)
