"""Keeps people from getting rights that they cannot give: by the account of somebody else, or by a changed role.

The checks are called by the use cases on accounts, access rules and roles: whoever sets the password of an account can
use its rights, and whoever changes a role changes the rights of all who have it.
"""

from collections.abc import Iterable

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.people.callers import rights_key
from fairlead.control.people.current_rights import find_caller
from fairlead.control.role_table import EVERYBODY, GIVEN_BY_HOLDERS
from fairlead.model.errors import Forbidden
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.people import Caller, User


def check_account_rights(context: Context, caller: Caller, user: User) -> None:
    """Raise Forbidden if the account has rights, anywhere, that the caller cannot give there."""
    if caller.is_administrator:
        return
    owner = context.directory.users.get(user.owner_id, user)
    other = find_caller(context.directory, owner)
    if other.is_administrator:
        raise Forbidden(f"{owner.name} is, or would become, an administrator; only administrators can do that")
    for scope_key, rights in other.rights.items():
        lacking = find_lacking(caller, rights & GIVEN_BY_HOLDERS, scope_key)
        if lacking:
            raise Forbidden(
                f"{caller.name} cannot change the account {owner.name}: it has, or would get, the right {lacking}, "
                "which they lack"
            )


def check_account_is_entrusted(context: Context, caller: Caller, operation: str, user: User) -> None:
    """Raise Forbidden if a caller with rights in one department made an account theirs by giving it a role there.

    Otherwise they could set its password, and would have the rights that it gets elsewhere later. An account is theirs
    if an administrator of their department created it, or if somebody who may change all accounts gave it a role.
    """
    if access.is_allowed(caller, operation, INSTALLATION_SCOPE_KEY):
        return
    owner = context.directory.users.get(user.owner_id, user)
    rules = context.directory.rules_of(owner)
    people = {one.name: one for one in context.directory.users.values()}

    def may(name: str, scope_key: str) -> bool:
        account = people.get(name)
        return account is not None and access.is_allowed(find_caller(context.directory, account), operation, scope_key)

    is_of_department = not may(owner.created_by, INSTALLATION_SCOPE_KEY) and all(
        may(owner.created_by, rights_key(rule.scope)) for rule in rules
    )
    is_given = any(may(rule.created_by, INSTALLATION_SCOPE_KEY) for rule in rules)
    if owner.created_by != caller.name and not is_of_department and not is_given:
        raise Forbidden(
            f"{owner.name} was not created in a department of {caller.name}, and nobody who may change all accounts "
            "gave it a role there; ask a system administrator"
        )


def check_role_content(caller: Caller, permissions: Iterable[str]) -> None:
    """Raise Forbidden if a role has a right that the caller does not have in the whole installation."""
    lacking = find_lacking(caller, set(permissions) - EVERYBODY, INSTALLATION_SCOPE_KEY)
    if lacking:
        raise Forbidden(f"{caller.name} cannot make or change a role with the right {lacking}, which they lack")


def find_lacking(caller: Caller, permissions: Iterable[str], scope_key: str) -> str:
    """The first of these permissions that the caller does not have in the scope; empty if none."""
    lacking = (one for one in sorted(permissions) if not access.is_allowed(caller, one, scope_key))
    return next(lacking, "")
