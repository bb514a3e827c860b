"""A lease: the right of one server to do something alone for a while, such as running one machine's pods."""

import msgspec

from fairlead.model.clock import Millis


class Lease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whoever stores the next version of it before it expires keeps it; after that anybody may take it."""

    #: What is held, e.g. the name of a machine.
    id: str
    version: int
    #: Which server holds it: a random id made at that server's start.
    holder: str
    expires_at: Millis
    #: Where the holder is reached by other servers on the same database.
    address: str = ""
    #: Where the holder serves workloads' URLs, as HOST:PORT.
    urls: str = ""

    def is_held_by_other(self, holder: str, now: Millis) -> bool:
        return self.holder != holder and now < self.expires_at
