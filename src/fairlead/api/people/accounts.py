"""Routes of users, service accounts (formerly called applications) and access keys.

Passwords and secrets are shown only in the answer that creates them.
"""

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from fairlead.api.http.body import query_text, receive_json
from fairlead.api.http.crud import (
    CreateShownOnce,
    DeleteRoute,
    HandledRoute,
    ReadRoute,
    RestResource,
    UpdateRoute,
    failing,
    operations,
)
from fairlead.api.http.list_parameters import (
    MAX_LIMIT,
    OFFSET,
    SEARCH,
    filter_by,
    read_list_request,
    sort_by,
    sort_order,
)
from fairlead.api.http.operation import (
    NO_CACHE,
    Call,
    Handler,
    Operation,
    Parameter,
    RequestBody,
    Schema,
    as_json,
)
from fairlead.api.http.shapes import Count
from fairlead.api.people.views import (
    AccountView,
    Enabling,
    KeyList,
    KeyView,
    Named,
    NewApplicationView,
    NewClientSecret,
    NewKeyView,
    NewSecret,
    NewServiceAccountView,
    NewUserView,
    OwnedKeyList,
    OwnedKeyView,
    PasswordChange,
    TemporaryPassword,
    UserCreation,
    UserUpdate,
    UserView,
    render_account,
    render_key,
    render_owned_key,
    render_user,
    when,
)
from fairlead.control.context import Context
from fairlead.control.lists import ListRequest, Page
from fairlead.control.people import accounts
from fairlead.control.people.accounts import USER_FIELDS, AccountInput, CreatedAccount, MachineInput, UserInput
from fairlead.model.clock import from_iso
from fairlead.model.english import with_article
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.people import ACCESS_KEY, Caller, User
from fairlead.model.spec.fields import is_given, value_or

_FILTERED = tuple(name for name in USER_FIELDS if name != "type")
_SORTED = tuple(name for name in USER_FIELDS if name != "isLocal")
_USER_LIMIT = Parameter(
    name="limit",
    schema={"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_LIMIT, "default": MAX_LIMIT},
    description="The maximum number of records.",
)


def _list_request(call: Call) -> ListRequest:
    request = read_list_request(call, _SORTED)
    is_given = "limit" in call.request.query_params
    return request if is_given else msgspec.structs.replace(request, limit=MAX_LIMIT)


async def get_users(call: Call) -> Response:
    page = accounts.find_accounts(call.context, call.caller, "user", _list_request(call))
    # `filter` is the older parameter, replaced by `filterBy`: part of a user's name.
    wanted = query_text(call, "filter").lower()
    page = page if not wanted else Page([user for user in page.items if wanted in user.name.lower()])
    return as_json([render_user(user) for user in page.items])


async def count_users(call: Call) -> Response:
    return as_json(Count(accounts.find_accounts(call.context, call.caller, "user", read_list_request(call)).total))


def _user_input(body: UserUpdate) -> AccountInput:
    return AccountInput(
        enabled=None if body.enabled is UNSET else body.enabled,
        groups=None if body.groups is UNSET else body.groups,
        machine_user=None if body.machine_user is UNSET else body.machine_user,
        sign_on=None if body.sign_on is UNSET else body.sign_on,
    )


async def log_out_user(call: Call) -> Response:
    await accounts.log_out(call.context, call.caller, call.path["userId"], call.request_id)
    return Response(status_code=200)


async def reset_password(call: Call) -> Response:
    renewed = await accounts.renew_secret(call.context, call.caller, "user", call.path["userId"], call.request_id)
    return as_json(TemporaryPassword(temp_password=renewed.secret), headers=NO_CACHE)


async def change_password(call: Call) -> Response:
    body = await receive_json(call, PasswordChange)
    await accounts.change_own_password(
        call.context, call.caller, body.current_password, body.new_password, call.request_id
    )
    # The contract's answer may repeat both passwords; an object without them is valid too.
    return as_json({})


async def get_accounts(call: Call) -> Response:
    request = ListRequest(limit=10**9)
    page = accounts.find_accounts(call.context, call.caller, "app", request)
    return as_json([render_account(user) for user in page.items])


def _account_id(call: Call) -> str:
    return call.path.get("serviceAccountId") or call.path["appId"]


async def renew_client_secret(call: Call) -> Response:
    renewed = await accounts.renew_secret(call.context, call.caller, "app", _account_id(call), call.request_id)
    return as_json(NewClientSecret(client_secret=renewed.secret), headers=NO_CACHE)


async def renew_application_secret(call: Call) -> Response:
    renewed = await accounts.renew_secret(call.context, call.caller, "app", _account_id(call), call.request_id)
    return as_json(NewSecret(secret=renewed.secret), headers=NO_CACHE)


async def get_own_keys(call: Call) -> Response:
    keys = accounts.load_own_keys(call.context, call.caller)
    return as_json(KeyList(access_keys=[render_key(key) for key in keys]))


async def renew_key_secret(call: Call) -> Response:
    id = call.path["accessKeyId"]
    renewed = await accounts.renew_secret(call.context, call.caller, ACCESS_KEY, id, call.request_id)
    return as_json(NewClientSecret(client_secret=renewed.secret), headers=NO_CACHE)


async def get_all_keys(call: Call) -> Response:
    page = accounts.find_accounts(call.context, call.caller, ACCESS_KEY, ListRequest(limit=10**9))
    return as_json(OwnedKeyList(access_keys=[render_owned_key(key) for key in page.items]))


def _loader(type: str) -> Callable[[Context, Caller, str], User]:
    return lambda context, caller, id: accounts.load_account(context, caller, type, id)


def _updater(type: str) -> Callable[[Context, Caller, str, AccountInput, str], Awaitable[User]]:
    return lambda context, caller, id, given, request_id: accounts.update_account(
        context, caller, type, id, given, request_id
    )


def _deleter(type: str) -> Callable[[Context, Caller, str, str], Awaitable[None]]:
    return lambda context, caller, id, request_id: accounts.delete_account(
        context, caller, type, id, request_id=request_id
    )


def _id(name: str) -> Parameter:
    return Parameter(name=name, place="path", schema={"type": "string"})


def _post(suffix: str, id: str, summary: str, run: Handler, view: Schema) -> HandledRoute:
    return HandledRoute(
        method="POST", suffix=suffix, id=id, summary=summary, run=run, answers={200: view}, also=(400, 404)
    )


_FAILURES = (401, 403, 500, 503)
_USERS = RestResource(
    path="/api/v1/users",
    id=_id("userId"),
    tag="People",
    view=UserView,
    render=lambda call, user: render_user(user),
    failures=_FAILURES,
    rows=(
        HandledRoute(
            id="get_users",
            summary="List users; the answer is an array",
            run=get_users,
            parameters=(
                Parameter(name="filter", schema={"type": "string"}),
                filter_by(_FILTERED),
                sort_by(_SORTED),
                sort_order(),
                OFFSET,
                _USER_LIMIT,
                SEARCH,
            ),
            answers={200: list[UserView]},
            also=(400,),
        ),
        CreateShownOnce(
            id="create_user",
            summary="Create a user; the answer shows the temporary password once",
            body=UserCreation,
            read=lambda body: UserInput(body.email, value_or(body.machine_user, "")),
            use_case=accounts.create_user,
            view=NewUserView,
            render=lambda created: NewUserView(
                id=created.account.id, username=created.account.name, temp_password=created.secret
            ),
        ),
        HandledRoute(
            suffix="/count",
            id="count_users",
            summary="Count users",
            run=count_users,
            parameters=(filter_by(_FILTERED), SEARCH),
            answers={200: Count},
            also=(400,),
        ),
        ReadRoute(id="get_user_by_id", summary="Get a user", use_case=_loader("user"), also=(400, 404)),
        UpdateRoute(
            method="PATCH",
            id="update_user_by_id",
            summary="Enable or disable a user, or set their groups",
            body=UserUpdate,
            read=_user_input,
            use_case=_updater("user"),
            also=(400, 404),
            is_addition=True,
        ),
        DeleteRoute(
            id="delete_user_by_id",
            summary="Delete a user with their access keys, access rules and credentials",
            use_case=_deleter("user"),
            also=(400, 404),
        ),
        _post("/{}/logout", "logout_user", "End all sessions of a user", log_out_user, None),
        _post(
            "/{}/password",
            "reset_user_password",
            "Reset a user's password; the answer shows the new one once",
            reset_password,
            TemporaryPassword,
        ),
    ),
)


class _AccountNames(msgspec.Struct, frozen=True, kw_only=True):
    """Service accounts have a current and a former name in the API; both are served."""

    path: str
    id: str
    noun: str
    created: type
    render: Callable[[CreatedAccount], object]
    renew: Handler
    renewed: type
    is_deprecated: bool = False


def _account_operations(names: _AccountNames) -> tuple[Operation, ...]:
    noun, word = names.noun, names.noun.replace(" ", "_")
    resource = RestResource(
        path=f"/api/v1/{names.path}",
        id=_id(names.id),
        tag="Service accounts",
        view=AccountView,
        render=lambda call, account: render_account(account),
        failures=_FAILURES,
        is_deprecated=names.is_deprecated,
        rows=(
            HandledRoute(
                id=f"get_{word}s",
                summary=f"List {noun}s; the answer is an array",
                run=get_accounts,
                answers={200: list[AccountView]},
                also=(400, 404),
            ),
            CreateShownOnce(
                id=f"create_{word}",
                summary=f"Create {with_article(noun)}; the answer shows its secret once",
                body=Named,
                read=_machine_input,
                use_case=accounts.create_service_account,
                view=names.created,
                render=names.render,
                also=(400, 404, 409),
            ),
            ReadRoute(
                id=f"get_{word}_by_id",
                summary=f"Get {with_article(noun)}",
                use_case=_loader("app"),
                also=(400, 404),
            ),
            UpdateRoute(
                method="PATCH",
                id=f"update_{word}_by_id",
                summary=f"Enable or disable {with_article(noun)}",
                body=Enabling,
                read=lambda body: AccountInput(enabled=body.enabled),
                use_case=_updater("app"),
                is_shown=False,
                also=(400, 404),
            ),
            DeleteRoute(
                id=f"delete_{word}_by_id",
                summary=f"Delete {with_article(noun)}",
                use_case=_deleter("app"),
                also=(400, 404),
            ),
            _post(
                "/{}/secret",
                f"regenerate_{word}_secret",
                f"Replace the secret of {with_article(noun)}; the answer shows the new one once",
                names.renew,
                names.renewed,
            ),
        ),
    )
    return operations(resource)


def _machine_input(body: Named) -> MachineInput:
    if not is_given(body.expires_at):
        return MachineInput(body.name)
    try:
        return MachineInput(body.name, from_iso(body.expires_at))
    except ValueError:
        details = f"is {body.expires_at[:40]!r}; a time such as 2027-01-31T00:00:00Z is expected"
        raise Invalid(issues=(ComplianceIssue("expiresAt", details),)) from None


_KEYS = RestResource(
    path="/api/v1/access-keys",
    id=_id("accessKeyId"),
    tag="People",
    view=KeyView,
    render=lambda call, key: render_key(key),
    failures=_FAILURES,
    rows=(
        HandledRoute(
            id="get_access_keys", summary="List the caller's access keys", run=get_own_keys, answers={200: KeyList}
        ),
        CreateShownOnce(
            id="create_access_key1",
            summary="Create an access key that acts as the caller; the answer shows its secret once",
            body=Named,
            read=_machine_input,
            use_case=accounts.create_access_key,
            view=NewKeyView,
            render=lambda created: NewKeyView(
                id=created.account.id,
                name=created.account.label,
                client_id=created.account.name,
                client_secret=created.secret,
                created_at=when(created.account.created_at),
            ),
        ),
        ReadRoute(
            id="get_access_key_by_id1",
            summary="Get one of the caller's access keys",
            use_case=_loader(ACCESS_KEY),
            also=(400, 404),
        ),
        DeleteRoute(
            id="delete_access_key_by_id",
            summary="Delete one of the caller's access keys",
            use_case=_deleter(ACCESS_KEY),
            also=(400, 404),
        ),
        _post(
            "/{}/secret",
            "regenerate_access_key_secret",
            "Replace the secret of an access key; the answer shows the new one once",
            renew_key_secret,
            NewClientSecret,
        ),
    ),
)
_ALL_KEYS: RestResource[User] = RestResource(
    path="/api/v1/administration/access-keys",
    id=_id("accessKeyId"),
    tag="People",
    view=OwnedKeyView,
    render=lambda call, key: render_owned_key(key),
    failures=_FAILURES,
    rows=(
        HandledRoute(
            id="get_access_keys_administration",
            summary="List the access keys of all users",
            run=get_all_keys,
            parameters=tuple(Parameter(name=name, schema={"type": "string"}) for name in ("clientId", "createdBy")),
            answers={200: OwnedKeyList},
            also=(400, 404),
        ),
        DeleteRoute(
            id="delete_access_key_by_id_administration",
            summary="Delete any user's access key",
            use_case=lambda context, caller, id, request_id: accounts.delete_account(
                context, caller, ACCESS_KEY, id, "administer", request_id
            ),
            also=(400, 404),
        ),
    ),
)

PEOPLE_OPERATIONS: tuple[Operation, ...] = (
    *operations(_USERS),
    Operation(
        method="POST",
        path="/api/v1/me/password",
        id="change_user_password",
        tag="People",
        summary="Change the caller's own password",
        run=change_password,
        body=RequestBody(schema=PasswordChange),
        answers={**failing(*_FAILURES, 400, 404), 200: {"type": "object"}},
    ),
    *_account_operations(
        _AccountNames(
            path="service-accounts",
            id="serviceAccountId",
            noun="service account",
            created=NewServiceAccountView,
            render=lambda created: NewServiceAccountView(
                id=created.account.id,
                name=created.account.name,
                client_id=created.account.name,
                client_secret=created.secret,
            ),
            renew=renew_client_secret,
            renewed=NewClientSecret,
        )
    ),
    *_account_operations(
        _AccountNames(
            path="apps",
            id="appId",
            noun="application",
            created=NewApplicationView,
            render=lambda created: NewApplicationView(
                id=created.account.id,
                name=created.account.name,
                client_id=created.account.name,
                secret=created.secret,
            ),
            renew=renew_application_secret,
            renewed=NewSecret,
            is_deprecated=True,
        )
    ),
    *operations(_KEYS),
    *operations(_ALL_KEYS),
)
