"""The table of roles: what the docs show of it, what stays, and what follows from it."""

from pathlib import Path

import pytest

from fairlead.control.role_table import (
    ADMINISTRATOR_ROLE,
    EVERYBODY,
    GIVEN_BY_HOLDERS,
    PERMISSION_SETS,
    RESOURCE_TYPES,
    ROLES,
    TYPE_OF_KIND,
    resolve_role,
)
from fairlead.model.records.access import CustomRole

PAGE = Path(__file__).parents[3] / "docs/people.md"
#: The columns of the table in the docs, and the types of resources that each shows.
COLUMNS = {
    "trainings, workspaces": ("trainings", "workspaces"),
    "inferences": ("inferences",),
    "assets": ("environments", "compute-resources", "git-assets", "templates", "datavolumes"),
    "credentials": ("credentials",),
    "projects": ("project",),
    "departments": ("department",),
    "policies": ("policies",),
    "access rules": ("access_rules",),
    "nodes": ("nodes",),
}
LETTERS = {"V": "read", "E": "update", "C": "create", "D": "delete"}


def letters(permissions: frozenset[str], type: str) -> str:
    return "".join(letter for letter, action in LETTERS.items() if f"{type}:{action}" in permissions) or "–"


def test_the_docs_show_the_table() -> None:
    want = ["| role | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    for role in ROLES:
        cells = [
            "/".join(dict.fromkeys(letters(role.permissions, type) for type in types)) for types in COLUMNS.values()
        ]
        want.append(f"| {role.name} | {' | '.join(cells)} |")
    shown = PAGE.read_text().partition("in the code -->\n")[2].partition("\n<!-- end of roles")[0]
    assert shown.splitlines() == want


def test_ids_and_names_stay() -> None:
    """Access rules hold the id of a role."""
    assert [(role.id, role.name) for role in ROLES] == [
        (1, "System administrator"),
        (2, "L1 researcher"),
        (3, "Department administrator"),
        (4, "Editor"),
        (5, "Research manager"),
        (6, "L2 researcher"),
        (7, "ML engineer"),
        (8, "Viewer"),
        (9, "Department viewer"),
        (10, "Environment administrator"),
        (11, "Credentials administrator"),
        (12, "Data source administrator"),
        (13, "Compute resource administrator"),
        (14, "Data volume administrator"),
        (15, "Template administrator"),
    ]


#: Rows of the documented matrix: workspaces and trainings, inferences, environments, credentials, projects.
@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("Department administrator", ("VECD", "VECD", "VECD", "VECD", "VECD")),
        ("Editor", ("VECD", "V", "VECD", "VECD", "VECD")),
        ("Research manager", ("V", "V", "VECD", "V", "VECD")),
        ("L1 researcher", ("VECD", "V", "VECD", "VECD", "V")),
        ("L2 researcher", ("VECD", "–", "V", "V", "V")),
        ("ML engineer", ("V", "VECD", "–", "V", "V")),
        ("Viewer", ("V", "V", "V", "V", "V")),
        ("Department viewer", ("V", "V", "V", "–", "V")),
        ("Environment administrator", ("V", "V", "VECD", "V", "V")),
    ],
)
def test_roles_allow_what_is_documented(name: str, want: tuple[str, ...]) -> None:
    role = next(role for role in ROLES if role.name == name)
    types = ("trainings", "inferences", "environments", "credentials", "project")
    assert tuple(letters(role.permissions, type) for type in types) == want


def test_the_administrator_may_do_everything() -> None:
    every = {f"{type.name}:{action}" for type in RESOURCE_TYPES for action in LETTERS.values()}
    assert every == ADMINISTRATOR_ROLE.permissions
    assert EVERYBODY.isdisjoint(GIVEN_BY_HOLDERS)


def test_every_kind_has_a_resource_type() -> None:
    assert [type.name for type in RESOURCE_TYPES if type.group == "workload"] == [
        "workloads",
        "workspaces",
        "trainings",
        "inferences",
    ]
    assert TYPE_OF_KIND == {
        "trainings": "trainings",
        "workspaces": "workspaces",
        "distributed": "trainings",
        "inferences": "inferences",
        "distributed-inferences": "inferences",
    }


def test_a_custom_role_allows_what_its_sets_allow() -> None:
    chosen = [one for one in PERMISSION_SETS.values() if one.name in ("Projects: view", "Data volumes: manage")]
    record = CustomRole(id=1001, name="steward", description="", permission_sets=tuple(one.id for one in chosen))
    role = resolve_role(record)
    assert (letters(role.permissions, "project"), letters(role.permissions, "datavolumes")) == ("V", "VECD")
    assert len(role.permissions) == 5
    disabled = CustomRole(
        id=1001, name="steward", description="", permission_sets=record.permission_sets, enabled=False
    )
    assert not resolve_role(disabled).permissions
