"""Which account of the server's machine a user's pods run as, and which user an account signs in as.

An administrator binds a user to an account. By the operator's rule of equal names, a user is also bound to the account
that is called like the part of the mail address before the @, unless that account is bound to somebody else. Engines
check whether the machine has the account, and which accounts may be used.
"""

from collections.abc import Iterator

from fairlead.control.context import Context
from fairlead.model.errors import ComplianceIssue, Forbidden, Invalid, Unauthenticated
from fairlead.model.records.people import Caller, User
from fairlead.model.records.workload import Workload

_LONGEST = 32


def account_of(context: Context, user: User | None) -> str:
    """The account of a user; empty for none."""
    if user is None or user.type != "user" or not user.enabled:
        return ""
    if user.machine_user:
        return user.machine_user
    name = user.name.partition("@")[0]
    return name if find_user(context, name) is user else ""


def find_user(context: Context, account: str) -> User | None:
    """The user of an account; None if nobody is bound to it, or by equal names more than one would be."""
    users = [user for user in context.directory.users.values() if user.type == "user" and user.enabled]
    bound = [user for user in users if user.machine_user == account]
    if bound:
        return bound[0]
    return next(iter(_of_equal_name(users, account)), None) if context.settings.binds_equal_names else None


def load_user_of(context: Context, account: str) -> User:
    """The user of an account; raises Unauthenticated if there is none."""
    user = find_user(context, account)
    if user is None:
        raise Unauthenticated(
            f"No user is bound to the account {account}; ask an administrator to run `fairlead user bind`"
        )
    return user


def _of_equal_name(users: list[User], account: str) -> Iterator[User]:
    equal = [user for user in users if not user.machine_user and user.name.partition("@")[0] == account]
    if len(equal) == 1:
        yield equal[0]


def check_binding(context: Context, account: str, user_id: str = "") -> None:
    """Raise Invalid if a user cannot be bound to this account; an empty name unbinds."""
    if not account:
        return
    path = "machineUser"
    if len(account) > _LONGEST or not account.isprintable() or set(account) & set(" :/,"):
        raise Invalid(issues=(ComplianceIssue(path, f"is '{account[:60]}', which is not the name of an account"),))
    if account == "root":
        raise Invalid(issues=(ComplianceIssue(path, "is root; no user's pods may run as root"),))
    for user in context.directory.users.values():
        if user.machine_user == account and user.id != user_id:
            raise Invalid(issues=(ComplianceIssue(path, f"is {account}, which is already bound to {user.name}"),))


def check_same_account(caller: Caller, workload: Workload) -> None:
    """Raise Forbidden if the caller would act with the files of somebody else's account."""
    if workload.machine_user and caller.name != workload.created_by and not caller.is_administrator:
        raise Forbidden(
            f"{workload.name} runs as the account {workload.machine_user} of {workload.created_by}; only they can open "
            "sessions in it or change it"
        )
