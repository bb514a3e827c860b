"""Ends what is left of a pod whose supervisor was lost: killed, or gone with a restart of the machine.

Called by the engine in a thread. The supervisor itself ends a pod in every other case.
"""

from fairlead.engines.local import attempts, journal
from fairlead.engines.local.attempts import Key
from fairlead.engines.local.linux import procfs, reaping
from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan.identity import ServerRights
from fairlead.engines.local.supervisor import container as supervisor_container
from fairlead.model.clock import Clock


def end_lost_pod(path: str, record: journal.Record, key: Key, rights: ServerRights, clock: Clock) -> journal.Record:
    """Kill its processes, remove its container and write the loss into its journal; the journal's last record."""
    is_same_boot = record["boot"] == procfs.boot_id()
    has_ended = not is_same_boot or reaping.kill_marked(f"{key[0]}.{key[1]}")
    if record.get("container"):
        supervisor_container.run(record["container"], plan_container.render_surroundings(rights))
    return attempts.record_loss(path, record, clock(), has_ended)
