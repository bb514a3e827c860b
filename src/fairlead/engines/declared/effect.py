"""How an engine says what a field of a spec does there: in a few words, with the test that has seen it."""

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
    #: The test that sees the effect, as `file::function` below `tests/`.
    proof: str = ""

    @property
    def is_claimed(self) -> bool:
        return bool(self.host)


def seen(host: str, proof: str, *, container: str = "", unless: str = "") -> Effect:
    """An effect, and the test that has seen it."""
    return Effect(host=host, proof=proof, container=container, unless=unless)


def idle(why: str, *, container: str = "", proof: str = "") -> Effect:
    """Recorded and not enforced on the host runtime, for this reason."""
    return Effect(unless=why, container=container, proof=proof)
