"""How an engine says what a field of a spec does there: in a few words, with the tests that have seen it."""

from collections.abc import Mapping

import msgspec

#: From the field's REST path (`[]` behind a list) to what becomes of it.
Table = Mapping[str, "Effect"]


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a field does on the local engine."""

    #: On the host runtime; empty where it does nothing there.
    host: str = ""
    #: In a container, where that differs.
    container: str = ""
    #: Why it is not enforced, or in which cases it is refused.
    unless: str = ""
    #: The test that sees the effect or, where there is none, what the workload says instead; `file::function`.
    proof: str = ""
    #: The test that sees the effect in a container.
    contained: str = ""
    #: Whether the loop does it, whatever runs the pods.
    is_of_loop: bool = False

    @property
    def is_claimed(self) -> bool:
        return bool(self.host)

    @property
    def is_proven(self) -> bool:
        """Whether a test has seen it do something, in a process or in a container."""
        return bool((self.host and self.proof) or self.contained)

    @property
    def is_stated(self) -> bool:
        """Whether a test has seen that a workload says before its start what it does not get."""
        return not self.is_proven and bool(self.unless and self.proof)


def seen(host: str, proof: str, *, container: str = "", unless: str = "") -> Effect:
    """An effect, and the test that has seen it."""
    return Effect(host=host, proof=proof, container=container, unless=unless)


def idle(why: str, *, container: str = "", proof: str = "") -> Effect:
    """Recorded and not enforced on the host runtime, for this reason; the test has seen that it is said."""
    return Effect(unless=why, container=container, proof=proof)


def named() -> Effect:
    """The name of an item in a list."""
    words = "tells items apart: a template's and a request's of the same name are one"
    return Effect(host=words, proof="unit/admission/test_templates.py::test_names_tell_items_apart", is_of_loop=True)
