"""What is known of the objects that this server wrote, when they are to be deleted."""

from typing import Any

from fairlead.engines.kubernetes.apply.written_kinds import WrittenKinds
from fairlead.engines.kubernetes.client.resources import CLAIM, DEPLOYMENT, SERVICE

PATH = "/api/v1/namespaces/team/services/web"


def service(name: str = "web") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "team"}}


def written() -> WrittenKinds:
    kinds = WrittenKinds()
    kinds.begin("w", may_have_others=False)
    kinds.note_sent("w", service())
    kinds.note_accepted("w", service(), "uid-1")
    return kinds


def test_accepted_objects_are_known_by_name() -> None:
    assert written().find_uids("w", SERVICE) == {PATH: "uid-1"}
    assert written().find_uids("w", DEPLOYMENT) == {}


def test_an_object_without_an_answer_may_have_any_uid() -> None:
    kinds = written()
    kinds.note_sent("w", service("late"))
    assert kinds.find_uids("w", SERVICE) is None
    assert kinds.objects_of("w").keys() == {PATH}, "nobody knows whether it exists"


def test_one_that_is_sent_again_keeps_its_uid() -> None:
    kinds = written()
    kinds.note_sent("w", service())
    assert kinds.find_uids("w", SERVICE) == {PATH: "uid-1"}


def test_objects_of_an_earlier_server_are_not_known() -> None:
    kinds = written()
    kinds.begin("w", may_have_others=True)
    assert kinds.find_uids("w", SERVICE) is None
    kinds.note_all("w", (SERVICE,))
    assert kinds.find_uids("w", SERVICE) is None, "they were listed as a kind only"
    assert kinds.find("w") == frozenset({SERVICE})


def test_after_a_run_only_its_claims_are_left() -> None:
    kinds = written()
    kinds.note("w", (CLAIM,))
    kinds.forget("w", keeps_claims=True)
    assert kinds.find("w") == frozenset({CLAIM})
    assert kinds.find_uids("w", SERVICE) == {}
    assert kinds.find_uids("w", CLAIM) is None
    kinds.forget("w", keeps_claims=False)
    assert kinds.find("w") is None
