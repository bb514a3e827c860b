"""Who is connected to a supervisor: the server that watches its state, readers that follow its output.

Part of the supervisor; it passes requests on and sends messages, and never waits.
"""

import contextlib
import os
import select
import socket
from collections.abc import Callable

from fairlead.engines.local import wire
from fairlead.engines.local.supervisor import remote_exec


class Peers:
    def __init__(
        self,
        poll: select.poll,
        on_request: Callable[[int, wire.Message], None],
        on_disconnect: Callable[[int], None],
    ) -> None:
        self._poll = poll
        self._on_request = on_request
        self._on_disconnect = on_disconnect
        self._links: dict[int, tuple[socket.socket, wire.Inbox]] = {}
        self._listener: socket.socket | None = None
        self.watchers: set[int] = set()
        self.followers: set[int] = set()
        self._is_output_complete = False

    def listen(self, path: str, member: str) -> None:
        """Listen at a socket and, if other pods of the group know this one by a name, publish it."""
        self._listener = wire.listen(path)
        self._poll.register(self._listener.fileno(), select.POLLIN)
        if member:
            remote_exec.register(member, path)

    def leave(self, path: str, member: str) -> None:
        """Stop listening."""
        if member:
            remote_exec.withdraw(member, path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def adopt(self, link: socket.socket, inbox: wire.Inbox) -> None:
        self._links[link.fileno()] = (link, inbox)
        self._poll.register(link.fileno(), select.POLLIN)

    def has(self, descriptor: int) -> bool:
        return descriptor in self._links or self._is_listener(descriptor)

    def _is_listener(self, descriptor: int) -> bool:
        return self._listener is not None and descriptor == self._listener.fileno()

    def on_readable(self, descriptor: int) -> None:
        """A descriptor can be read: a new connection, a request, or the end of one."""
        if self._listener is not None and self._is_listener(descriptor):
            with contextlib.suppress(BlockingIOError):
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                self.adopt(connection, wire.Inbox())
            return
        link, inbox = self._links[descriptor]
        try:
            data = link.recv(65_536)
            requests = list(inbox.feed(data))
        except BlockingIOError:
            return
        except (OSError, ValueError):
            data, requests = b"", []
        for request in requests:
            self._on_request(descriptor, request)
        if not data:
            self._drop(descriptor)

    def send(self, descriptor: int, message: wire.Message) -> None:
        """Best effort: a peer that does not read in time reads the files instead."""
        try:
            self._links[descriptor][0].send(wire.encode(message))
        except BlockingIOError:
            pass
        except OSError:
            self._drop(descriptor)

    def send_descriptors(self, descriptor: int, message: wire.Message, given: list[int]) -> None:
        """Hand open files over; a copy stays with the caller."""
        with contextlib.suppress(OSError):
            socket.send_fds(self._links[descriptor][0], [wire.encode(message)], given)

    def notify_watchers(self, message: wire.Message) -> None:
        for descriptor in list(self.watchers):
            self.send(descriptor, message)

    def notify_followers(self) -> None:
        for descriptor in list(self.followers):
            self.send(descriptor, {})

    def follow(self, descriptor: int) -> None:
        """A reader wants to know of new output, if there can be any."""
        if self._is_output_complete:
            self._drop(descriptor)
            return
        self.followers.add(descriptor)
        # There may be output since the follower last read the files.
        self.send(descriptor, {})

    def end_following(self) -> None:
        """There is no more output, although the pod has not ended yet."""
        self._is_output_complete = True
        for descriptor in list(self.followers):
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        link, _ = self._links.pop(descriptor, (None, None))
        self.watchers.discard(descriptor)
        self.followers.discard(descriptor)
        if link is not None:
            self._poll.unregister(descriptor)
            with contextlib.suppress(OSError):
                # A process that was forked meanwhile has a copy of it.
                link.shutdown(socket.SHUT_RDWR)
            link.close()
            self._on_disconnect(descriptor)
