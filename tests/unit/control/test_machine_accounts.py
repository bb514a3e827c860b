"""Which account a user's pods run as, and which user an account signs in as."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.control.context import Context, ControlSettings
from fairlead.control.machine_accounts import account_of, check_binding, check_same_account, find_user
from fairlead.model.errors import Forbidden, Invalid
from fairlead.model.records.people import Caller, User
from tests import builders


def user(name: str, **members: Any) -> User:
    given: dict[str, Any] = {"id": name, "version": 1, "type": "user", "name": name, "secret_hash": "", "created_at": 0}
    return User(**(given | members))


def context(*users: User, equal: bool = False) -> Context:
    directory = SimpleNamespace(users={one.id: one for one in users})
    made = SimpleNamespace(directory=directory, settings=ControlSettings(binds_equal_names=equal))
    return cast(Context, made)


BOUND = user("ann@lab.example", machine_user="ann")
BOB = user("bob@lab.example")


@pytest.mark.parametrize(
    ("users", "equal", "want"),
    [
        pytest.param([BOUND, BOB], False, {"ann": BOUND, "bob": None}, id="only-who-is-bound"),
        pytest.param([BOUND, BOB], True, {"ann": BOUND, "bob": BOB}, id="also-by-equal-names"),
        pytest.param([BOB, user("bob@other.example")], True, {"bob": None}, id="two-of-that-name"),
        pytest.param([BOB, user("eve@lab.example", machine_user="bob")], True, {"bob": "eve"}, id="bound-to-another"),
        pytest.param([user("bob@lab.example", enabled=False)], True, {"bob": None}, id="disabled"),
        pytest.param([user("bob", type="app")], True, {"bob": None}, id="a-service-account"),
    ],
)
def test_who_an_account_signs_in_as(users: list[User], equal: bool, want: dict[str, Any]) -> None:
    given = context(*users, equal=equal)
    for account, expected in want.items():
        found = find_user(given, account)
        assert (found is not None and found.name.startswith("eve")) if expected == "eve" else found is expected
    for one in users:
        account = account_of(given, one)
        assert account == "" or find_user(given, account) is one


@pytest.mark.parametrize("account", ["root", "a b", "x:y", "../x", "y" * 40, "ann"])
def test_accounts_without_a_bound_user(account: str) -> None:
    with pytest.raises(Invalid):
        check_binding(context(BOUND), account, BOB.id)
    check_binding(context(BOUND), "ann", BOUND.id)
    check_binding(context(BOUND), "", BOB.id)


def test_only_its_own_user_acts_in_a_workload_of_an_account() -> None:
    workload = builders.workload(machine_user="ann", created_by="ann@lab.example")
    check_same_account(Caller(name="ann@lab.example", id="1"), workload)
    check_same_account(Caller(name="admin", id="2", is_administrator=True), workload)
    check_same_account(Caller(name="bob@lab.example", id="3"), builders.workload(created_by="ann@lab.example"))
    with pytest.raises(Forbidden):
        check_same_account(Caller(name="bob@lab.example", id="3"), workload)
