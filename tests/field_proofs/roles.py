"""Tests that have seen fields in pods of single roles."""

from collections.abc import Mapping

_ROLES = "e2e/test_groups_fields.py::"

#: Members that are the spec of a role: the tests that have seen what is in it from inside a pod of that role, by how
#: the path of a property begins.
_INSIDE: dict[str, str] = {
    "probes.": f"{_ROLES}test_probes_are_asked_in_each_role",
    "compute.cpuMemoryLimit": f"{_ROLES}test_memory_is_limited_in_each_role",
    "compute.cpuCoreRequest": f"{_ROLES}test_a_group_waits_for_what_one_role_asks",
    "compute.cpuMemoryRequest": f"{_ROLES}test_a_group_waits_for_what_one_role_asks",
    "compute.extendedResources": f"{_ROLES}test_a_group_waits_for_what_one_role_asks",
    "": f"{_ROLES}test_seen_from_inside_leader_and_worker",
}
_KEPT = f"{_ROLES}test_stored_texts_come_back_as_they_were_sent"
#: Of a master no more is seen than that it has its own: its pod is made as that of a training, where all of it is.
ROLES: Mapping[str, Mapping[str, str]] = {"leader": _INSIDE, "worker": _INSIDE, "masterSpec": {}}


def role_proof(role: str, path: str, is_claimed: bool) -> str:
    """The test that has seen a property in a role, or nothing; for one without effect, that it is kept and told."""
    proofs = ROLES[role].items() if is_claimed else [("", _KEPT)] if ROLES[role] else []
    return next((proof for start, proof in proofs if path.startswith(start)), "")
