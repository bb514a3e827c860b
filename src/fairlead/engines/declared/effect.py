"""How an engine says what a field of a spec does there."""

import msgspec


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a field does on the local engine."""

    #: On the host runtime; empty if it does nothing there.
    host: str = ""
    #: In a container, if that differs.
    container: str = ""
    #: Why it is not enforced, or in which cases it is refused.
    unless: str = ""
    #: Whether the control loop does it, whatever runs the pods.
    is_of_loop: bool = False

    @property
    def is_claimed(self) -> bool:
        return bool(self.host)


class ClusterEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What a field does on a cluster. Without `words` it does the same as in a container of this machine."""

    words: str = ""
    #: Why it has no effect there.
    unless: str = ""

    @property
    def is_claimed(self) -> bool:
        return not self.unless
