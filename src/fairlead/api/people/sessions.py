"""Routes of the caller's sessions, and of codes with which a user sets a new password. An addition of Fairlead."""

from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.operation import NO_CACHE, Call, Handler, Operation, Parameter, RequestBody, Schema, as_json
from fairlead.api.people.views import OwnSessions, PasswordReset, ResetCode, render_session
from fairlead.control.people import accounts, login_sessions
from fairlead.model.clock import iso


async def get_sessions(call: Call) -> Response:
    sessions = login_sessions.load_own_sessions(call.context, call.caller)
    return as_json(OwnSessions(sessions=[render_session(call, one) for one in sessions]))


async def end_session(call: Call) -> Response:
    await accounts.end_session(call.context, call.caller, call.path["sessionId"], call.request_id)
    return Response(status_code=204)


async def end_sessions(call: Call) -> Response:
    """Sign out everywhere: all tokens of the caller become invalid, this one included."""
    await accounts.log_out(call.context, call.caller, call.caller.id, call.request_id)
    return Response(status_code=204)


async def make_reset_code(call: Call) -> Response:
    reset_code = await accounts.make_reset_code(call.context, call.caller, call.path["userId"], call.request_id)
    return as_json(
        ResetCode(code=reset_code.secret, expires_at=iso(reset_code.account.reset_expires_at)), 201, NO_CACHE
    )


async def use_reset_code(call: Call) -> Response:
    body = await receive_json(call, PasswordReset)
    await accounts.use_reset_code(call.context, body.code, body.new_password, call.request_id)
    return Response(status_code=204)


def _operation(method: str, path: str, id: str, summary: str, run: Handler, answers: dict[int, Schema]) -> Operation:
    name = path.partition("{")[2].partition("}")[0]
    return Operation(
        method=method,
        path=f"/api/v1{path}",
        id=id,
        tag="People",
        summary=summary,
        run=run,
        parameters=(Parameter(name=name, place="path", schema={"type": "string"}),) if name else (),
        answers={**failing(400, 401, 403, 404, 500, 503), **answers},
        is_addition=True,
    )


SESSION_LIST_OPERATIONS: tuple[Operation, ...] = (
    _operation("GET", "/me/sessions", "get_own_sessions", "List your sessions", get_sessions, {200: OwnSessions}),
    _operation("DELETE", "/me/sessions", "end_own_sessions", "Sign out everywhere", end_sessions, {204: None}),
    _operation(
        "DELETE", "/me/sessions/{sessionId}", "end_own_session", "End one of your sessions", end_session, {204: None}
    ),
    _operation(
        "POST",
        "/users/{userId}/reset-code",
        "create_reset_code",
        "Create a code with which the user can set a new password once, within a day",
        make_reset_code,
        {201: ResetCode},
    ),
    Operation(
        method="POST",
        path="/api/v1/password-reset",
        id="reset_password",
        tag="People",
        summary="Set a new password with a reset code",
        run=use_reset_code,
        body=RequestBody(schema=PasswordReset),
        answers={204: None, **failing(400, 500, 503)},
        is_public=True,
        is_addition=True,
    ),
)
