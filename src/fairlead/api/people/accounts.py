"""Users, service accounts (once called applications) and access keys: the routes, and what of them is shown.

A password or secret stands in the one answer that makes it, and nowhere else.
"""

from typing import Any

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from fairlead.api.http.body import query_text, receive_json
from fairlead.api.http.errors import Error
from fairlead.api.http.list_parameters import (
    LIMIT_MOST,
    OFFSET,
    SEARCH,
    filter_by,
    read_list_request,
    sort_by,
    sort_order,
)
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Count
from fairlead.api.people.auth import NO_CACHE
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
    key_members,
    render_account,
    render_user,
    when,
)
from fairlead.control.lists import ListRequest, Page
from fairlead.control.people import accounts
from fairlead.control.people.accounts import USER_FIELDS, AccountInput
from fairlead.control.people.authentication import ACCESS_KEY

_FILTERED = tuple(name for name in USER_FIELDS if name != "type")
_SORTED = tuple(name for name in USER_FIELDS if name != "isLocal")
_USER_LIMIT = Parameter(
    name="limit",
    schema={"type": "integer", "format": "int32", "minimum": 1, "maximum": LIMIT_MOST, "default": LIMIT_MOST},
    description="How many records at most.",
)


def _list_request(call: Call) -> ListRequest:
    request = read_list_request(call, _SORTED)
    is_given = "limit" in call.request.query_params
    return request if is_given else msgspec.structs.replace(request, limit=LIMIT_MOST)


async def get_users(call: Call) -> Response:
    page = accounts.find_accounts(call.context, call.caller, "user", _list_request(call))
    # The older `filter` names one user; `filterBy` is its successor.
    wanted = query_text(call, "filter").lower()
    page = page if not wanted else Page([user for user in page.items if wanted in user.name.lower()])
    return as_json([render_user(user) for user in page.items])


async def count_users(call: Call) -> Response:
    return as_json(Count(accounts.find_accounts(call.context, call.caller, "user", read_list_request(call)).total))


async def create_user(call: Call) -> Response:
    body = await receive_json(call, UserCreation)
    made = await accounts.create_user(call.context, call.caller, body.email, call.request_id)
    view = NewUserView(id=made.account.id, username=made.account.name, temp_password=made.secret)
    return as_json(view, 201, NO_CACHE)


async def get_user(call: Call) -> Response:
    return as_json(render_user(accounts.load_account(call.context, call.caller, "user", call.path["userId"])))


async def update_user(call: Call) -> Response:
    body = await receive_json(call, UserUpdate)
    input = AccountInput(
        enabled=None if body.enabled is UNSET else body.enabled, groups=None if body.groups is UNSET else body.groups
    )
    id = call.path["userId"]
    return as_json(
        render_user(await accounts.update_account(call.context, call.caller, "user", id, input, call.request_id))
    )


async def delete_user(call: Call) -> Response:
    await accounts.delete_account(call.context, call.caller, "user", call.path["userId"], request_id=call.request_id)
    return Response(status_code=204)


async def log_out_user(call: Call) -> Response:
    await accounts.log_out(call.context, call.caller, call.path["userId"], call.request_id)
    return Response(status_code=200)


async def reset_password(call: Call) -> Response:
    made = await accounts.renew_secret(call.context, call.caller, "user", call.path["userId"], call.request_id)
    return as_json(TemporaryPassword(temp_password=made.secret), headers=NO_CACHE)


async def change_password(call: Call) -> Response:
    body = await receive_json(call, PasswordChange)
    await accounts.change_own_password(
        call.context, call.caller, body.current_password, body.new_password, call.request_id
    )
    # The contract's answer repeats both passwords; an object without them agrees with it as well.
    return as_json({})


async def get_accounts(call: Call) -> Response:
    request = ListRequest(limit=10**9)
    page = accounts.find_accounts(call.context, call.caller, "app", request)
    return as_json([render_account(user) for user in page.items])


async def create_service_account(call: Call) -> Response:
    body = await receive_json(call, Named)
    account, secret = await accounts.create_service_account(call.context, call.caller, body.name, call.request_id)
    view = NewServiceAccountView(id=account.id, name=account.name, client_id=account.name, client_secret=secret)
    return as_json(view, 201, NO_CACHE)


async def create_application(call: Call) -> Response:
    body = await receive_json(call, Named)
    account, secret = await accounts.create_service_account(call.context, call.caller, body.name, call.request_id)
    view = NewApplicationView(id=account.id, name=account.name, client_id=account.name, secret=secret)
    return as_json(view, 201, NO_CACHE)


def _account_id(call: Call) -> str:
    return call.path.get("serviceAccountId") or call.path["appId"]


async def get_account(call: Call) -> Response:
    return as_json(render_account(accounts.load_account(call.context, call.caller, "app", _account_id(call))))


async def update_account(call: Call) -> Response:
    body = await receive_json(call, Enabling)
    input = AccountInput(enabled=body.enabled)
    await accounts.update_account(call.context, call.caller, "app", _account_id(call), input, call.request_id)
    return Response(status_code=200)


async def delete_account(call: Call) -> Response:
    await accounts.delete_account(call.context, call.caller, "app", _account_id(call), request_id=call.request_id)
    return Response(status_code=204)


async def renew_client_secret(call: Call) -> Response:
    made = await accounts.renew_secret(call.context, call.caller, "app", _account_id(call), call.request_id)
    return as_json(NewClientSecret(client_secret=made.secret), headers=NO_CACHE)


async def renew_application_secret(call: Call) -> Response:
    made = await accounts.renew_secret(call.context, call.caller, "app", _account_id(call), call.request_id)
    return as_json(NewSecret(secret=made.secret), headers=NO_CACHE)


async def get_own_keys(call: Call) -> Response:
    keys = accounts.load_own_keys(call.context, call.caller)
    return as_json(KeyList(access_keys=[KeyView(**key_members(key)) for key in keys]))


async def create_key(call: Call) -> Response:
    body = await receive_json(call, Named)
    key, secret = await accounts.create_access_key(call.context, call.caller, body.name, call.request_id)
    view = NewKeyView(
        id=key.id, name=key.label, client_id=key.name, client_secret=secret, created_at=when(key.created_at)
    )
    return as_json(view, 201, NO_CACHE)


async def get_own_key(call: Call) -> Response:
    key = accounts.load_account(call.context, call.caller, ACCESS_KEY, call.path["accessKeyId"])
    return as_json(KeyView(**key_members(key)))


async def delete_own_key(call: Call) -> Response:
    await accounts.delete_account(
        call.context, call.caller, ACCESS_KEY, call.path["accessKeyId"], request_id=call.request_id
    )
    return Response(status_code=204)


async def renew_key_secret(call: Call) -> Response:
    id = call.path["accessKeyId"]
    made = await accounts.renew_secret(call.context, call.caller, ACCESS_KEY, id, call.request_id)
    return as_json(NewClientSecret(client_secret=made.secret), headers=NO_CACHE)


async def get_all_keys(call: Call) -> Response:
    page = accounts.find_accounts(call.context, call.caller, ACCESS_KEY, ListRequest(limit=10**9))
    return as_json(
        OwnedKeyList(access_keys=[OwnedKeyView(**key_members(key), created_by=key.created_by) for key in page.items])
    )


async def delete_any_key(call: Call) -> Response:
    id = call.path["accessKeyId"]
    await accounts.delete_account(call.context, call.caller, ACCESS_KEY, id, "administer", call.request_id)
    return Response(status_code=204)


_FAILURES = {401: Error, 403: Error, 500: Error, 503: Error}
_READ = {400: Error, **_FAILURES}
_CHANGE = {**_READ, 404: Error}


def _id(name: str) -> Parameter:
    return Parameter(name=name, place="path", schema={"type": "string"})


def _operation(method: str, path: str, id: str, summary: str, run: Handler, **members: Any) -> Operation:
    members.setdefault("tag", "People")
    names = [segment[1:-1] for segment in path.split("/") if segment.startswith("{")]
    parameters = (*(_id(name) for name in names), *members.pop("parameters", ()))
    return Operation(
        method=method, path=f"/api/v1{path}", id=id, summary=summary, run=run, parameters=parameters, **members
    )


_USERS = (
    _operation(
        "GET",
        "/users",
        "get_users",
        "List users; an array",
        get_users,
        parameters=(
            Parameter(name="filter", schema={"type": "string"}),
            filter_by(_FILTERED),
            sort_by(_SORTED),
            sort_order(),
            OFFSET,
            _USER_LIMIT,
            SEARCH,
        ),
        answers={200: list[UserView], **_READ},
    ),
    _operation(
        "POST",
        "/users",
        "create_user",
        "Create a user with a password that is told once",
        create_user,
        body=RequestBody(schema=UserCreation),
        answers={201: NewUserView, **_READ, 409: Error},
    ),
    _operation(
        "GET",
        "/users/count",
        "count_users",
        "How many users match",
        count_users,
        parameters=(filter_by(_FILTERED), SEARCH),
        answers={200: Count, **_READ},
    ),
    _operation("GET", "/users/{userId}", "get_user_by_id", "One user", get_user, answers={200: UserView, **_CHANGE}),
    _operation(
        "PATCH",
        "/users/{userId}",
        "update_user_by_id",
        "Let a user log in or not, and set their groups",
        update_user,
        body=RequestBody(schema=UserUpdate),
        answers={200: UserView, **_CHANGE},
        is_addition=True,
    ),
    _operation(
        "DELETE",
        "/users/{userId}",
        "delete_user_by_id",
        "Delete a user with their access keys, rules and credentials",
        delete_user,
        answers={204: None, **_CHANGE},
    ),
    _operation(
        "POST",
        "/users/{userId}/logout",
        "logout_user",
        "End all sessions of a user",
        log_out_user,
        answers={200: None, **_CHANGE},
    ),
    _operation(
        "POST",
        "/users/{userId}/password",
        "reset_user_password",
        "Give a user another password, told once",
        reset_password,
        answers={200: TemporaryPassword, **_CHANGE},
    ),
    _operation(
        "POST",
        "/me/password",
        "change_user_password",
        "Change the caller's own password",
        change_password,
        body=RequestBody(schema=PasswordChange),
        answers={200: {"type": "object"}, **_CHANGE},
    ),
)


def _account_operations(
    base: str, variable: str, noun: str, words: tuple[str, str], creates: tuple[Any, Any], renews: tuple[Any, Any]
) -> tuple[Operation, ...]:
    """Service accounts under their present and under their former name."""
    is_former = base == "/apps"
    one = f"{base}/{{{variable}}}"
    word, many = words
    return tuple(
        _operation(method, path, id, summary, run, is_deprecated=is_former, tag="Service accounts", **members)
        for method, path, id, summary, run, members in (
            (
                "GET",
                base,
                f"get_{many}",
                f"List {noun}s; an array",
                get_accounts,
                {"answers": {200: list[AccountView], **_CHANGE}},
            ),
            (
                "POST",
                base,
                f"create_{word}",
                f"Create a {noun}; its secret is told once",
                creates[0],
                {"body": RequestBody(schema=Named), "answers": {201: creates[1], **_CHANGE, 409: Error}},
            ),
            ("GET", one, f"get_{word}_by_id", f"One {noun}", get_account, {"answers": {200: AccountView, **_CHANGE}}),
            (
                "PATCH",
                one,
                f"update_{word}_by_id",
                f"Let a {noun} log in or not",
                update_account,
                {"body": RequestBody(schema=Enabling), "answers": {200: None, **_CHANGE}},
            ),
            (
                "DELETE",
                one,
                f"delete_{word}_by_id",
                f"Delete a {noun}",
                delete_account,
                {"answers": {204: None, **_CHANGE}},
            ),
            (
                "POST",
                f"{one}/secret",
                f"regenerate_{word}_secret",
                f"Give a {noun} another secret, told once",
                renews[0],
                {"answers": {200: renews[1], **_CHANGE}},
            ),
        )
    )


_KEYS = (
    _operation(
        "GET",
        "/access-keys",
        "get_access_keys",
        "The caller's access keys",
        get_own_keys,
        answers={200: KeyList, **_FAILURES},
    ),
    _operation(
        "POST",
        "/access-keys",
        "create_access_key1",
        "Create an access key that acts as the caller; its secret is told once",
        create_key,
        body=RequestBody(schema=Named),
        answers={201: NewKeyView, **_READ, 409: Error},
    ),
    _operation(
        "GET",
        "/access-keys/{accessKeyId}",
        "get_access_key_by_id1",
        "One of the caller's access keys",
        get_own_key,
        answers={200: KeyView, **_CHANGE},
    ),
    _operation(
        "DELETE",
        "/access-keys/{accessKeyId}",
        "delete_access_key_by_id",
        "Delete one of the caller's access keys",
        delete_own_key,
        answers={204: None, **_CHANGE},
    ),
    _operation(
        "POST",
        "/access-keys/{accessKeyId}/secret",
        "regenerate_access_key_secret",
        "Give an access key another secret, told once",
        renew_key_secret,
        answers={200: NewClientSecret, **_CHANGE},
    ),
    _operation(
        "GET",
        "/administration/access-keys",
        "get_access_keys_administration",
        "The access keys of all users",
        get_all_keys,
        parameters=tuple(Parameter(name=name, schema={"type": "string"}) for name in ("clientId", "createdBy")),
        answers={200: OwnedKeyList, **_CHANGE},
    ),
    _operation(
        "DELETE",
        "/administration/access-keys/{accessKeyId}",
        "delete_access_key_by_id_administration",
        "Delete any user's access key",
        delete_any_key,
        answers={204: None, **_CHANGE},
    ),
)

PEOPLE_OPERATIONS: tuple[Operation, ...] = (
    *_USERS,
    *_account_operations(
        "/service-accounts",
        "serviceAccountId",
        "service account",
        ("service_account", "service_accounts"),
        (create_service_account, NewServiceAccountView),
        (renew_client_secret, NewClientSecret),
    ),
    *_account_operations(
        "/apps",
        "appId",
        "application",
        ("application", "applications"),
        (create_application, NewApplicationView),
        (renew_application_secret, NewSecret),
    ),
    *_KEYS,
)
