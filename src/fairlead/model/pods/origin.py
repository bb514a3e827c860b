"""Where a pod was, for a store of logs outside of Fairlead. Pure."""

import msgspec

from fairlead.model.clock import Millis


class PodOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """By which such a store finds the output of a pod that is gone."""

    #: Empty for the first cluster of a server.
    cluster_id: str = ""
    namespace: str
    pod: str
    container: str = ""
    created_at: Millis
    ended_at: Millis | None = None
