"""The nouns `user`, `service-account` and `group`: list, create, describe, delete, reset secrets, and grant roles."""

import pwd
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.organization.roles import find_role
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.session.settings import next_command
from fairlead.cli.terminal.facts import record_facts, show_facts
from fairlead.cli.terminal.output import Listing, chosen_format, render
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import age
from fairlead.client import NameNotFound, ServerError
from fairlead.client.access.urls import quote
from fairlead.client.json_object import Json

_PATHS = {"user": "/api/v1/users", "service-account": "/api/v1/service-accounts"}
_RULES = "/api/v1/authorization/access-rules"
_NAMES = {"user": "username", "service-account": "name"}
_TITLES = {"user": "user", "service-account": "service account", "group": "group"}
_ROLE = Flag("role", "Role, as `fairlead role list` names it", default="researcher", placeholder="NAME")
_MACHINE_USER = Flag("machine-user", "Account on the server's machine that jobs run as", placeholder="NAME")
#: The member of a request that the flag sets.
_MEMBER, _FLAG = "machineUser", f"--{_MACHINE_USER.name}"
_EXPIRES = Flag("expires", "After this time it can no longer be used", "duration")
_RESET = "Create a code with which a user can set a new password once; it is shown once"
_BIND = "Bind a user to an account on the server's machine; without --machine-user, unbind"
_SIGN_ON = "Let a user sign on with the identity provider; this removes their password"
_SCOPE = (
    Flag("project", "Scope of the role: this project", short="p", placeholder="NAME"),
    Flag("department", "Scope of the role: this department and its projects", placeholder="NAME"),
)


def commands(noun: str) -> tuple[Command, ...]:
    word = _TITLES[noun]
    usage = "MAIL" if noun == "user" else "NAME"

    def command(verb: str, summary: str, run: Callable[[Invocation, str], int], *flags: Flag) -> Command:
        return Command(verb, summary, lambda call: run(call, noun), flags, usage, 1, 1)

    rights = (
        command("grant", f"Grant a role to a {word}; without a scope, everywhere", _grant, _ROLE, *_SCOPE),
        command("revoke", f"Revoke a role from a {word}; without a scope, the one everywhere", _revoke, _ROLE, *_SCOPE),
    )
    if noun == "group":
        return rights
    return (
        Command("list", f"List {word}s", lambda call: _list(call, noun), OUTPUT, aliases=("ls",)),
        command("create", f"Create a {word}; its secret is shown once", _create, *_of_people(noun), *OUTPUT),
        command("describe", f"Show a {word} and its roles", _describe, *OUTPUT),
        command("renew", f"Replace the secret of a {word}; the new one is shown once", _renew, *OUTPUT),
        *((command("reset-code", _RESET, _make_reset_code, *OUTPUT),) if noun == "user" else ()),
        command("enable", f"Allow a {word} to log in", _enable),
        command("disable", f"Stop a {word} from logging in", _disable),
        *rights,
        *((command("bind", _BIND, _bind, _MACHINE_USER),) if noun == "user" else ()),
        *((command("sign-on", _SIGN_ON, _allow_sign_on),) if noun == "user" else ()),
        command("delete", f"Delete a {word} with its keys, access rules and credentials", _delete),
    )


def _of_people(noun: str) -> tuple[Flag, ...]:
    return (_MACHINE_USER,) if noun == "user" else (_EXPIRES,)


def _rows(session: ServerSession, noun: str) -> list[Json]:
    rows: list[Json] = session.client.request("GET", _PATHS[noun])
    return rows


def _find(session: ServerSession, noun: str, name: str) -> Json:
    return find_named(_rows(session, noun), name, _TITLES[noun], _NAMES[noun])


def _list(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    now = time.time()
    columns = (
        TableColumn("NAME", lambda row: row[_NAMES[noun]], shrinks=True),
        TableColumn("ENABLED", lambda row: "no" if row.get("enabled") is False else "yes"),
        TableColumn("MACHINE USER", lambda row: row.get("machineUser") or "", wide=True),
        TableColumn("GROUPS", lambda row: ",".join(row.get("groups") or ()), wide=True),
        TableColumn("CREATED BY", lambda row: row.get("createdBy") or "", wide=True),
        TableColumn("ID", lambda row: row["id"], wide=True),
        TableColumn("AGE", lambda row: age(row.get("createdAt"), now)),
    )
    listing = Listing(columns, lambda row: str(row[_NAMES[noun]]), f"No {_TITLES[noun]}s found.")
    form = chosen_format(invocation, session.settings)
    listing.show(session.console, form, _rows(session, noun), not invocation.get("no-headers"))
    session.close()
    return OK


@contextmanager
def _flag_in_errors() -> Iterator[None]:
    """An error about the account names the flag."""
    try:
        yield
    except ServerError as error:
        message, details = (text.replace(_MEMBER, _FLAG) for text in (error.message, error.details))
        issues = tuple(issue._replace(field=issue.field.replace(_MEMBER, _FLAG)) for issue in error.issues)
        raise ServerError(error.status, message, details, issues) from error


def _create(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    name = invocation.names[0]
    body = {"email": name} if noun == "user" else {"name": name}
    if invocation.get("machine-user"):
        body[_MEMBER] = invocation.get("machine-user")
    if invocation.get("expires"):
        ends = datetime.fromtimestamp(time.time() + invocation.get("expires"), UTC)
        body["expiresAt"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    with _flag_in_errors():
        created = session.client.request("POST", _PATHS[noun], body)
    form = chosen_format(invocation, session.settings)
    if form in ("json", "yaml"):
        session.console.data(render(session.console, form, created))
    else:
        if created.get("tempPassword") == "":
            session.console.say(f"{name} has no password: the account belongs to the person who signs on as {name}.")
        else:
            session.console.data(created.get("tempPassword") or created["clientSecret"])
            what = "password" if noun == "user" else "client secret"
            session.console.say(f"This is the {what} of {name}. It is shown only once.")
        grant = next_command(invocation, f"{noun} grant {name} --project NAME")
        session.console.say(f"Grant access with `{grant}`.")
        _warn_of_account(session, body.get(_MEMBER, ""))
        if noun == "user" and session.is_personal:
            restart = next_command(invocation, "server restart")
            session.console.complain(
                f"This server is in personal mode: jobs of {name} would run as its owner. Turn it into a shared server "
                f"with `{restart} -- --shared`; it cannot start in personal mode any more."
            )
    session.close()
    return OK


def _describe(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _find(session, noun, invocation.names[0])
    account["accessRules"] = _rules(session, noun, account)
    if not session.show(account, invocation.names[0]):
        rules = account.pop("accessRules")
        show_facts(session.console, record_facts(account))
        session.console.data("\nRoles" if rules else "\nNo roles")
        for rule in rules:
            session.console.data(f"{rule['roleName']} of {rule['scopeType']} {rule['scopeName']}")
    session.close()
    return OK


def _rules(session: ServerSession, noun: str, account: Json) -> list[Json]:
    rules = session.client.request("GET", _RULES, limit=500)["accessRules"]
    names = (account.get("id"), _name(noun, account))
    return [
        rule for rule in rules if rule["subjectId"] in names and (rule["subjectType"] == "group") is (noun == "group")
    ]


def _name(noun: str, account: Json) -> str:
    return str(account[_NAMES.get(noun, "name")])


def _subject(session: ServerSession, noun: str) -> Json:
    """Who gets or loses a role. Groups are not kept here: any name may be one that sign-on brings along."""
    name = session.invocation.names[0]
    return {"name": name} if noun == "group" else _find(session, noun, name)


def _renew(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _find(session, noun, invocation.names[0])
    last = "password" if noun == "user" else "secret"
    renewed = session.client.request("POST", f"{_PATHS[noun]}/{quote(account['id'])}/{last}")
    form = chosen_format(invocation, session.settings)
    if form in ("json", "yaml"):
        session.console.data(render(session.console, form, renewed))
    else:
        session.console.data(renewed.get("tempPassword") or renewed["clientSecret"])
    session.console.say("The old secret and all sessions that used it are no longer valid.")
    session.close()
    return OK


def _make_reset_code(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _find(session, noun, invocation.names[0])
    reset = session.client.request("POST", f"{_PATHS[noun]}/{quote(account['id'])}/reset-code")
    if not session.show(reset, reset["code"]):
        session.console.data(reset["code"])
        session.console.say(
            f"{account['username']} sets a new password with `fairlead login reset CODE`, within a day."
        )
    session.close()
    return OK


def _enable(invocation: Invocation, noun: str) -> int:
    return _set_enabled(invocation, noun, True)


def _disable(invocation: Invocation, noun: str) -> int:
    return _set_enabled(invocation, noun, False)


def _set_enabled(invocation: Invocation, noun: str, enabled: bool) -> int:
    session = ServerSession(invocation)
    account = _find(session, noun, invocation.names[0])
    session.client.request("PATCH", f"{_PATHS[noun]}/{quote(account['id'])}", {"enabled": enabled})
    session.console.say(f"{account[_NAMES[noun]]} can {'' if enabled else 'no longer '}log in.")
    session.close()
    return OK


def _bind(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _find(session, noun, invocation.names[0])
    wanted = invocation.get("machine-user") or ""
    with _flag_in_errors():
        session.client.request("PATCH", f"{_PATHS[noun]}/{quote(account['id'])}", {_MEMBER: wanted})
    how = (
        f"run as the account {wanted} of the server's machine"
        if wanted
        else "no longer run as an account of the machine"
    )
    session.console.say(f"New jobs of {account[_NAMES[noun]]} {how}.")
    _warn_of_account(session, wanted)
    session.close()
    return OK


def _allow_sign_on(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _find(session, noun, invocation.names[0])
    session.client.request("PATCH", f"{_PATHS[noun]}/{quote(account['id'])}", {"signOn": True})
    name = account[_NAMES[noun]]
    session.console.say(f"{name} no longer has a password. The next person who signs on as {name} gets the account.")
    session.close()
    return OK


def _warn_of_account(session: ServerSession, account: str) -> None:
    """Say that an account does not exist; only the machine of the server can tell."""
    if not account or session.is_elsewhere:
        return
    try:
        pwd.getpwnam(account)
    except KeyError:
        session.console.complain(f"This machine has no account {account}. Jobs fail until it exists.")


def _scope(session: ServerSession) -> tuple[str, str, str]:
    """The scope's type, id and name from the flags; without one, the whole installation."""
    project, department = session.invocation.get("project"), session.invocation.get("department")
    if project and department:
        raise UsageError("Use --project or --department, not both.")
    if not project and not department:
        cluster = session.client.clusters()[0]
        return "cluster", str(cluster["uuid"]), str(cluster["name"])
    rows = session.client.projects() if project else session.client.departments()
    word = "project" if project else "department"
    scope = find_named(rows, str(project or department), word)
    return word, str(scope["id"]), str(scope["name"])


def _grant(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _subject(session, noun)
    type, id, name = _scope(session)
    role = find_role(session, invocation.get("role") or "researcher")
    rule = {
        "subjectId": _name(noun, account),
        "subjectType": noun,
        "roleId": role["id"],
        "scopeType": type,
        "scopeId": id,
    }
    session.client.request("POST", _RULES, rule)
    session.console.say(f"{_name(noun, account)} is {role['name']} of {type} {name}.")
    session.close()
    return OK


def _revoke(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _subject(session, noun)
    type, id, name = _scope(session)
    role = find_role(session, invocation.get("role") or "researcher")
    revoked = [
        rule
        for rule in _rules(session, noun, account)
        if (rule["roleId"], rule["scopeType"], rule["scopeId"]) == (role["id"], type, id)
    ]
    if not revoked:
        raise NameNotFound(f"{_name(noun, account)} is not {role['name']} of {type} {name}.")
    for rule in revoked:
        session.client.request("DELETE", f"{_RULES}/{rule['id']}")
    session.console.say(f"{_name(noun, account)} is no longer {role['name']} of {type} {name}.")
    session.close()
    return OK


def _delete(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    account = _find(session, noun, invocation.names[0])
    session.client.request("DELETE", f"{_PATHS[noun]}/{quote(account['id'])}")
    session.console.say(f"Deleted {_TITLES[noun]} {account[_NAMES[noun]]}.")
    session.close()
    return OK
