"""The noun `role`: list the roles and what they allow, and make roles of permission sets."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.output import Listing, chosen_format
from fairlead.cli.terminal.tables import TableColumn
from fairlead.client import NameNotFound
from fairlead.client.json_object import Json

_ROLES = "/api/v2/authorization/roles"
_SETS = "/api/v1/authorization/permission-sets"
#: Short names of the two most used roles.
_SHORT = {"administrator": "System administrator", "researcher": "L1 researcher"}
_LETTERS = {"read": "V", "update": "E", "create": "C", "delete": "D"}
_DESCRIPTION = Flag("description", "Description", placeholder="TEXT")
_SET = Flag("permission-set", "Permission set, by name; can be repeated", repeatable=True, placeholder="NAME")


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command("list", "List the roles", _list, OUTPUT, aliases=("ls",)),
        Command(
            "describe", "Show what a role allows: V view, E edit, C create, D delete", _describe, OUTPUT, "NAME", 1, 1
        ),
        Command("create", "Create a role from permission sets", _create, (_SET, _DESCRIPTION, *OUTPUT), "NAME", 1, 1),
        Command("delete", "Delete a role that nobody has", _delete, (), "NAME", 1, 1),
        Command("permission-sets", "List the permission sets from which roles are made", _list_sets, OUTPUT),
    )


def find_role(session: ServerSession, name: str) -> Json:
    """The role of that name; case does not matter, and hyphens may stand for spaces."""
    rows: list[Json] = session.client.request("GET", _ROLES)
    wanted = _plain(_SHORT.get(name.lower(), name))
    for row in rows:
        if _plain(str(row["name"])) == wanted or str(row["id"]) == name:
            return row
    known = ", ".join(str(row["name"]) for row in rows)
    raise NameNotFound(f"There is no role {name}. Known roles: {known}.")


def _plain(name: str) -> str:
    return name.lower().replace("-", " ")


def _list(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    columns = (
        TableColumn("NAME", lambda row: row["name"]),
        TableColumn("ID", lambda row: str(row["id"]), wide=True),
        TableColumn("CUSTOM", lambda row: "yes" if row["custom"] else "no"),
        TableColumn("DESCRIPTION", lambda row: row["description"], shrinks=True),
    )
    _show(
        session,
        Listing(columns, lambda row: str(row["name"]), "No roles found."),
        session.client.request("GET", _ROLES),
    )
    return OK


def _list_sets(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    columns = (
        TableColumn("NAME", lambda row: row["name"]),
        TableColumn("ALLOWS", lambda row: row["description"], shrinks=True),
        TableColumn("ID", lambda row: row["id"], wide=True),
    )
    listing = Listing(columns, lambda row: str(row["name"]), "No permission sets found.")
    _show(session, listing, session.client.request("GET", _SETS))
    return OK


def _show(session: ServerSession, listing: Listing, rows: list[Json]) -> None:
    form = chosen_format(session.invocation, session.settings)
    listing.show(session.console, form, rows, not session.invocation.get("no-headers"))
    session.close()


def _describe(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    role = find_role(session, invocation.names[0])
    if not session.show(role, str(role["name"])):
        session.console.data(f"{role['name']}: {role['description']}")
        for permission in role["permissions"]:
            letters = "".join(letter for action, letter in _LETTERS.items() if action in permission["actions"])
            session.console.data(f"{letters:4}  {permission['displayName']}")
    session.close()
    return OK


def _create(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    wanted = invocation.get("permission-set") or []
    if not wanted:
        raise UsageError("Give at least one --permission-set; `fairlead role permission-sets` lists them.")
    sets = {str(row["name"]).lower(): row for row in session.client.request("GET", _SETS)}
    unknown = [name for name in wanted if name.lower() not in sets]
    if unknown:
        raise NameNotFound(f"There is no permission set {unknown[0]}. `fairlead role permission-sets` lists them.")
    body = {
        "name": invocation.names[0],
        "description": invocation.get("description") or "",
        "permissionSets": [{"id": sets[name.lower()]["id"]} for name in wanted],
    }
    role = session.client.request("POST", _ROLES, body)
    if not session.show(role, str(role["name"])):
        session.console.say(f"Created role {role['name']}. Grant it with `fairlead user grant MAIL --role NAME`.")
    session.close()
    return OK


def _delete(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    role = find_role(session, invocation.names[0])
    session.client.request("DELETE", f"{_ROLES}/{role['id']}")
    session.console.say(f"Deleted role {role['name']}.")
    session.close()
    return OK
