"""What every queue uses, kept while queues change: searches compare with the figures from before they began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.scheduling.model.queues import Amounts, LiveQueue

Usage = Mapping[str, Amounts]


class UsageTracker:
    def __init__(self, queues: Mapping[str, LiveQueue], changed: Sequence[LiveQueue]) -> None:
        """`changed` grows with every change of a queue's usage."""
        self.changed = changed
        self.read = len(changed)
        self.amounts = {name: _amounts(queue) for name, queue in queues.items()}

    def now(self) -> Usage:
        """The figures at this moment. They stay as they are until somebody asks again."""
        for queue in set(self.changed[self.read :]):
            self.amounts[queue.name] = _amounts(queue)
        self.read = len(self.changed)
        return self.amounts


def _amounts(queue: LiveQueue) -> Amounts:
    return (queue.allocated[0], queue.allocated[1], queue.allocated[2])
