"""One shared GPU of a node while a cycle runs; `live.LiveNode` books tasks on it, `gpus` chooses among them."""

from __future__ import annotations


class GpuGroup:
    """One shared GPU: memory of the tasks booked on it, in MiB."""

    __slots__ = ("allocated", "device", "id", "opened", "pipelined", "releasing", "steady")

    def __init__(self, group_id: str, device: int | None) -> None:
        self.id = group_id
        self.device = device
        #: All tasks but the pipelined ones, so the releasing ones too.
        self.allocated = 0
        self.pipelined = 0
        self.releasing = 0
        #: Number of bookings that are not pipelined.
        self.steady = 0
        #: Whether there ever was such a booking, even if it has become a promise since.
        self.opened = False

    def idle_cost(self) -> int:
        return 1 if self.allocated > 0 else 0

    def releasing_gain(self) -> int:
        """A group that is leaving entirely gives its GPU back; one that only pipelined tasks will open takes one."""
        if self.allocated > 0:
            return 1 if self.releasing == self.allocated and self.pipelined == 0 else 0
        return -1 if self.pipelined > 0 else 0
