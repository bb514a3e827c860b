"""Writes users, service accounts, custom roles and access rules.

Passwords and client secrets stay where they are: everyone gets a new one, which the report shows once.
"""

from fairlead.client.json_object import Json
from fairlead.client.transfer.writer import Writer

_RULES = "/api/v1/authorization/access-rules"
_CUSTOM_ROLES = "/api/v2/authorization/roles"
_PERMISSION_SETS = "/api/v1/authorization/permission-sets"
#: Accounts that every installation has of its own.
_OWN = "bootstrap"
#: Roles of Run:ai that mean the same within their scope as a role here. Narrower ones are reported, never widened.
_ROLES = {
    "Researcher": "L1 researcher",
}
_APPLICATIONS = ("app", "service-account")


def write_people(writer: Writer) -> None:
    users = {str(row["username"]): row for row in writer.target.request("GET", "/api/v1/users")}
    accounts = {str(row["name"]): row for row in writer.target.request("GET", "/api/v1/service-accounts")}
    for user in writer.bundle.users:
        if user.get("createdBy") != _OWN:
            _write_user(writer, user, users)
    for account in writer.bundle.service_accounts:
        if account.get("createdBy") != _OWN:
            _write_account(writer, account, accounts)
    roles = {str(row["name"]): str(row["id"]) for row in writer.target.request("GET", "/api/v1/authorization/roles")}
    for role in writer.bundle.roles:
        _write_role(writer, role, roles)
    answer = writer.target.pages(_RULES, "accessRules", {})
    there = {_key(rule, str(rule["roleId"]), str(rule["scopeId"])) for rule in answer}
    for rule in writer.bundle.access_rules:
        if rule.get("createdBy") != _OWN and not rule.get("deletedAt"):
            _write_rule(writer, rule, roles, there)


def _write_user(writer: Writer, user: Json, there: dict[str, Json]) -> None:
    name = str(user["username"])
    if name in there:
        writer.leave_unchanged("user", name)
    else:
        if user.get("isLocal") is False:
            writer.report.lose("single sign-on of user", name, "has a password here instead")
        created = writer.create("user", name, "/api/v1/users", {"email": name})
        if created and created.get("tempPassword"):
            writer.report.secrets.append(("password of user", name, str(created["tempPassword"])))
        if created and user.get("machineUser"):
            reason = f"was {user['machineUser']} on the source's machine; bind it again with `fairlead user bind`"
            writer.report.lose("machine account of user", name, reason)
        if created and user.get("groups"):
            writer.report.lose("groups of user", name, f"add them again: {', '.join(user['groups'])}")


def _write_account(writer: Writer, account: Json, there: dict[str, Json]) -> None:
    name = str(account["name"])
    if name in there:
        writer.leave_unchanged("service account", name)
        return
    created = writer.create("service account", name, "/api/v1/service-accounts", {"name": name})
    if created and created.get("clientSecret"):
        secret = f"client id {created.get('clientId', name)}, secret {created['clientSecret']}"
        writer.report.secrets.append(("secret of service account", name, secret))


def _write_role(writer: Writer, role: Json, there: dict[str, str]) -> None:
    """A custom role, if the target has all of its permission sets: a role with fewer rights would be another one."""
    name = str(role["name"])
    if name in there:
        writer.leave_unchanged("custom role", name)
        return
    known = {str(row["name"]): str(row["id"]) for row in writer.target.request("GET", _PERMISSION_SETS)}
    wanted = [str(one.get("name")) for one in role.get("permissionSets") or ()]
    missing = [each for each in wanted if each not in known]
    if missing or not wanted:
        reason = f"the target has no permission set {missing[0]}" if missing else "its permission sets are not shown"
        writer.report.lose("custom role", name, reason)
        return
    body = {
        "name": name,
        "description": str(role.get("description") or ""),
        "enabled": role.get("enabled") is not False,
        "permissionSets": [{"id": known[each]} for each in wanted],
    }
    created = writer.create("custom role", name, _CUSTOM_ROLES, body)
    if created is not None:
        there[name] = str(created["id"])


def _key(rule: Json, role_id: str, scope_id: str) -> tuple[str, str, str, str]:
    return str(rule["subjectId"]), role_id, str(rule["scopeType"]), scope_id


def _write_rule(writer: Writer, rule: Json, roles: dict[str, str], there: set[tuple[str, str, str, str]]) -> None:
    role, subject = str(rule.get("roleName") or rule["roleId"]), _subject(writer, rule)
    name = f"{role} of {rule['scopeType']} {rule.get('scopeName') or rule['scopeId']} for {subject}"
    role_id = roles.get(role) or roles.get(_ROLES.get(role, ""))
    if role_id is None:
        writer.report.lose("access rule", name, f"the target has no role {role}")
        return
    scope = writer.scopes.translate(str(rule["scopeType"]), rule["scopeId"])
    if scope is None:
        writer.report.lose("access rule", name, f"the target has no such {rule['scopeType']}")
        return
    is_application = rule["subjectType"] in _APPLICATIONS
    body = {
        "subjectId": subject,
        "subjectType": "app" if is_application else rule["subjectType"],
        "roleId": int(role_id) if role_id.isdecimal() else role_id,
        "scopeType": scope[0],
        "scopeId": scope[1],
    }
    if _key(body, role_id, scope[1]) in there:
        writer.leave_unchanged("access rule", name)
        return
    if writer.create("access rule", name, _RULES, body) is not None:
        there.add(_key(body, role_id, scope[1]))
    if role in _ROLES and role not in roles:
        writer.report.lose("role of access rule", name, f"became {_ROLES[role]}")


def _subject(writer: Writer, rule: Json) -> str:
    """Whom a rule is for: a user by name; an application by name, which the source may call by another id."""
    if rule["subjectType"] in _APPLICATIONS:
        for account in writer.bundle.service_accounts:
            if rule["subjectId"] in (account.get("clientId"), account["id"], account["name"]):
                return str(account["name"])
    return str(rule["subjectId"])
