"""Views and bodies of users, service accounts and access keys."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from fairlead.api.http.operation import Call
from fairlead.api.http.shapes import Instant, Shape
from fairlead.model.clock import Millis, iso
from fairlead.model.records.people import LoginSession, User
from fairlead.model.spec.fields import Given, Maybe, Spec, Text, UpTo253


class UserView(Shape):
    id: str
    username: str
    created_at: Instant | None
    created_by: str
    updated_at: Instant | None
    last_login: Instant | None
    is_local: bool | None
    groups: tuple[str, ...] = ()
    #: An addition: whether the user can log in.
    enabled: bool | UnsetType = UNSET
    #: An addition: the account of the server's machine as which the user's pods run.
    machine_user: str | UnsetType = UNSET


class NewUserView(Shape):
    id: str
    username: str
    temp_password: str


class AccountView(Shape):
    """A service account."""

    id: str
    name: str
    client_id: str
    enabled: bool
    created_at: Instant | None
    created_by: str
    updated_at: Instant | None
    last_login: Instant | None
    #: An addition: when it can no longer be used.
    expires_at: Instant | UnsetType = UNSET


class OwnSession(Shape):
    """A session of the caller: the tokens of one sign-in."""

    id: str
    created_at: Instant
    expires_at: Instant
    address: str
    client: str
    #: Whether this request belongs to it.
    current: bool


class OwnSessions(Shape):
    sessions: list[OwnSession]


class ResetCode(Shape):
    """A code with which a user sets a new password once."""

    code: str
    expires_at: Instant


class NewServiceAccountView(Shape):
    id: str
    name: str
    client_id: str
    client_secret: str


class NewApplicationView(Shape):
    id: str
    name: str
    client_id: str
    secret: str


class KeyView(Shape):
    id: str
    name: str
    client_id: str
    created_at: Instant | None
    last_login: Instant | None
    #: An addition: when it can no longer be used.
    expires_at: Instant | UnsetType = UNSET


class OwnedKeyView(KeyView):
    created_by: str = ""


class NewKeyView(Shape):
    id: str
    name: str
    client_id: str
    client_secret: str
    created_at: Instant | None


class KeyList(Shape):
    access_keys: list[KeyView]


class OwnedKeyList(Shape):
    access_keys: list[OwnedKeyView]


class TemporaryPassword(Shape):
    temp_password: str


class NewClientSecret(Shape):
    client_secret: str


class NewSecret(Shape):
    secret: str


class UserCreation(Spec, frozen=True, kw_only=True):
    """A new user. The answer has their password; the administrator passes it on."""

    email: Annotated[str, Meta(extra_json_schema={"pattern": r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$"})]
    reset_password: Maybe[bool] = UNSET
    notify: Maybe[bool] = UNSET
    machine_user: Maybe[UpTo253] = UNSET


class UserUpdate(Spec, frozen=True, kw_only=True):
    """Changes to a user: whether they can log in, the groups for access rules, and the account of the machine."""

    enabled: Given[bool] = UNSET
    groups: Given[Annotated[tuple[UpTo253, ...], Meta(max_length=1000)]] = UNSET
    machine_user: Given[UpTo253] = UNSET
    #: Hands the account to the person of that name who signs on next with the identity provider.
    sign_on: Given[Literal[True]] = UNSET


class Named(Spec, frozen=True, kw_only=True):
    """The name of a new service account or access key."""

    name: Annotated[str, Meta(extra_json_schema={"pattern": "^[a-z][-_a-z0-9]*[a-z0-9]$", "maxLength": 255})]
    #: An addition: when it can no longer be used.
    expires_at: Maybe[Annotated[str, Meta(extra_json_schema={"format": "date-time"})]] = UNSET


class Enabling(Spec, frozen=True, kw_only=True):
    """Whether a service account can log in."""

    enabled: bool


class PasswordReset(Spec, frozen=True, kw_only=True):
    """A reset code, and the new password of the user whom it belongs to."""

    code: Text
    new_password: Text


class PasswordChange(Spec, frozen=True, kw_only=True):
    """The current and the new password of a user."""

    current_password: Text
    new_password: Text


def when(at: Millis | None) -> str | None:
    return iso(at) if at else None


def render_user(user: User) -> UserView:
    return UserView(
        id=user.id,
        username=user.name,
        created_at=when(user.created_at),
        created_by=user.created_by,
        updated_at=when(user.updated_at or user.created_at),
        last_login=when(user.last_login_at),
        is_local=user.is_local,
        groups=user.groups,
        enabled=user.enabled,
        machine_user=user.machine_user or UNSET,
    )


def render_account(user: User) -> AccountView:
    return AccountView(
        id=user.id,
        name=user.name,
        client_id=user.name,
        enabled=user.enabled,
        created_at=when(user.created_at),
        created_by=user.created_by,
        updated_at=when(user.updated_at or user.created_at),
        last_login=when(user.last_login_at),
        expires_at=when(user.expires_at) or UNSET,
    )


def render_session(call: Call, session: LoginSession) -> OwnSession:
    return OwnSession(
        id=session.id,
        created_at=iso(session.created_at),
        expires_at=iso(session.expires_at),
        address=session.address,
        client=session.client,
        current=session.id == call.caller.session_id,
    )


def render_key(key: User) -> KeyView:
    return KeyView(
        id=key.id,
        name=key.label,
        client_id=key.name,
        created_at=when(key.created_at),
        last_login=when(key.last_login_at),
        expires_at=when(key.expires_at) or UNSET,
    )


def render_owned_key(key: User) -> OwnedKeyView:
    return OwnedKeyView(
        id=key.id,
        name=key.label,
        client_id=key.name,
        created_at=when(key.created_at),
        last_login=when(key.last_login_at),
        expires_at=when(key.expires_at) or UNSET,
        created_by=key.created_by,
    )
