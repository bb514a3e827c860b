"""What KAI sees in a cluster now, read without a server of ours. Loaded by `snapshot --engine kubernetes` only."""

import time

from fairlead.cli.flags import UsageError
from fairlead.engines.kubernetes.install.scheduler_objects import read_scheduler_objects
from fairlead.foresight.kai.convert import convert_objects
from fairlead.model.errors import Refused
from fairlead.scheduling import Snapshot


def read_cluster(kubeconfig: str) -> Snapshot:
    """Raises UsageError if the cluster cannot be read."""
    try:
        return convert_objects(read_scheduler_objects(kubeconfig), round(time.time(), 3))
    except Refused as error:
        raise UsageError(f"{error}.") from None
