"""The environment that a workload takes over from its caller's shell, and what was piped into the call."""

import msgspec

from fairlead.model.clock import Millis


class CallerEnvironment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values are sealed as those of secrets are; only names and sizes can be read."""

    id: str
    version: int
    created_by: str
    created_at: Millis
    names: tuple[str, ...] = ()
    input_bytes: int = 0
    #: Variables and input, encrypted for this record's id.
    sealed: str
    #: Empty until a workload was submitted with it; it is deleted with that workload.
    workload_id: str = ""
