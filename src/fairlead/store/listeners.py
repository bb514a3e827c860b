"""The subscribers of a store. Both stores have one `Listeners`; it is used on the event loop only."""

import logging
from collections.abc import Callable, Sequence

from fairlead.store.base import Listener

_log = logging.getLogger(__name__)


class Listeners:
    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}

    def add(self, listener: Listener) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    def notify(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        """Call every listener. A listener that raises does not affect the others or the commit."""
        for listener in list(self._listeners.values()):
            try:
                listener(revision, subjects)
            except Exception:
                _log.exception("A listener of the store failed at revision %d", revision)
