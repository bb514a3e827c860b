"""Who wants to hear of commits. Both stores keep one of these; it is used on the event loop only."""

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

    def tell(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        """Tell everybody; one that fails keeps nobody else from hearing, and no commit from being acknowledged."""
        for listener in list(self._listeners.values()):
            try:
                listener(revision, subjects)
            except Exception:
                _log.exception("a listener of the store failed at revision %d", revision)
