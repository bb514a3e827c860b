"""A lease: the right of one server to do something alone for a while, such as running one machine's pods."""

import msgspec

from fairlead.model.clock import Millis


class Lease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Its holder renews it by storing the next version before it expires. After that any server may take it."""

    #: What the lease is for, such as the name of a machine.
    id: str
    version: int
    #: The server that holds it: a random id generated at its start.
    holder: str
    expires_at: Millis
    #: Where the holder is reached by other servers on the same database.
    address: str = ""
    #: Where the holder serves workloads' URLs, as HOST:PORT.
    urls: str = ""

    def is_held_by_other(self, holder: str, now: Millis) -> bool:
        return self.holder != holder and now < self.expires_at
