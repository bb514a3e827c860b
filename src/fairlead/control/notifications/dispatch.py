"""Sends the deliveries that rules want, until they arrive. One per server; `app` starts it.

The list of events is the outbox: an event is written with the change that it tells about. The deliveries of a portion
of events and the position after them are one commit under the position's version: of several servers one makes them,
and a crash neither loses nor doubles them. A delivery is claimed before it is sent, by moving the time of its next
attempt; if the server dies while it sends, the delivery is sent again.
"""

import asyncio
import contextlib
import logging
from concurrent.futures import ThreadPoolExecutor

import msgspec

from fairlead.control.context import Context
from fairlead.control.notifications.channels import SENDERS, Message
from fairlead.control.notifications.deliveries import DeliveryMaker
from fairlead.control.notifications.settings import NotificationSettings
from fairlead.model.clock import DAY, SECOND, Millis
from fairlead.model.errors import Conflict, FairleadError, Refused
from fairlead.model.records.notifications import Delivery
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Where
from fairlead.store.collections import DELIVERIES, NOTIFICATION_RULES

log = logging.getLogger("fairlead.notifications")
_DELETED = "The rule was deleted"
_MAX_DELIVERIES = 50
#: Seconds between checks while deliveries are unsent, and between checks for workloads that wait too long.
_PAUSE, _WAITING_PAUSE = 2.0, 20.0
#: The first pause after a failed attempt; it doubles up to the longest. After so many attempts a delivery is given up.
FIRST_RETRY: Millis = 10 * SECOND
LONGEST_RETRY: Millis = 3600 * SECOND
MAX_ATTEMPTS = 15
#: How long an attempt may take before another server takes the delivery over, and how long deliveries are kept.
_CLAIM: Millis = 60 * SECOND
_KEPT: Millis = 14 * DAY
#: Threads of its own: a receiver that is slow must not hold up other parts of the server.
_THREADS = 8


class Notifier:
    def __init__(self, context: Context, settings: NotificationSettings) -> None:
        self._context = context
        self._store = context.store
        self._settings = settings
        self._maker = DeliveryMaker(context, settings.public_url)
        self._threads = ThreadPoolExecutor(_THREADS, "notify")
        self._free = asyncio.Semaphore(_THREADS)
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def start(self) -> None:
        self._unsubscribe = self._store.subscribe(lambda revision, subjects: self._changed.set())
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._unsubscribe()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                seconds = await self.run_once()
            except FairleadError as error:
                log.warning("Notifications are late: %s", error)
                seconds = _PAUSE
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
            # An event is followed when it is a second old.
            await asyncio.sleep(_PAUSE)

    async def run_once(self) -> float | None:
        """Make what follows from new events and from the time, and send what is due.

        Returns after how many seconds there is something to do although nothing changes; None for never.
        """
        rules = await self._store.find(Query(collection=NOTIFICATION_RULES))
        now = self._context.clock()
        if rules:
            await self._maker.record_deliveries(rules, now)
        await self._remove_old(now)
        if await self._send_due(now):
            return _PAUSE
        return _WAITING_PAUSE if any("waiting" in rule.on for rule in rules) else None

    async def _send_due(self, now: Millis) -> bool:
        """Send what is due; returns whether something is left to be sent, now or later."""
        waiting = Query(
            collection=DELIVERIES,
            where=(Where("next_at", Comparison.IS_NULL, False),),
            order=(("next_at", False),),
            limit=_MAX_DELIVERIES,
        )
        unsent: list[Delivery] = await self._store.find(waiting)
        due: dict[tuple[str, str], list[Delivery]] = {}
        for one in unsent:
            if one.next_at is not None and one.next_at <= now:
                due.setdefault((one.rule_id, one.workload_id), []).append(one)
        await asyncio.gather(*(self._send(deliveries) for deliveries in due.values()))
        return bool(unsent)

    async def _send(self, deliveries: list[Delivery]) -> None:
        """Send what one rule tells about one workload, in its order."""
        async with self._free:
            for delivery in deliveries:
                await self._claim_and_send(delivery)

    async def _claim_and_send(self, delivery: Delivery) -> None:
        now = self._context.clock()
        claimed: Delivery = msgspec.structs.replace(
            delivery, version=delivery.version + 1, attempts=delivery.attempts + 1, next_at=now + _CLAIM
        )
        try:
            await self._store.commit(Change(writes=(Put(DELIVERIES, claimed),)))
        except Conflict:
            return
        error = await self._try(claimed, now)
        members: dict[str, object] = {"next_at": None, "sent_at": now, "error": ""}
        if error:
            pause = min(FIRST_RETRY << (claimed.attempts - 1), LONGEST_RETRY)
            next_at = now + pause if claimed.attempts < MAX_ATTEMPTS and error != _DELETED else None
            members = {"next_at": next_at, "error": error[:500]}
            log.warning("Notification %s was not sent (attempt %d): %s", claimed.id, claimed.attempts, error)
        after: Delivery = msgspec.structs.replace(claimed, version=claimed.version + 1, **members)
        await self._store.commit(Change(writes=(Put(DELIVERIES, after),)))

    async def _try(self, delivery: Delivery, now: Millis) -> str:
        """Send it; returns what went wrong."""
        rule = await self._store.get(NOTIFICATION_RULES, delivery.rule_id)
        if rule is None:
            return _DELETED
        try:
            secret = self._context.vault.open(rule.sealed, rule.id) if rule.sealed else {"url": rule.target, "key": ""}
            message = Message(delivery.id, now // SECOND, secret["url"], secret["key"], delivery.body)
            send = SENDERS[rule.channel]
            await asyncio.get_running_loop().run_in_executor(self._threads, send, self._settings, message)
        except OSError as error:
            # Without the number of the error, which says nothing to people.
            return error.strerror or str(error) or type(error).__name__
        except (ValueError, Refused) as error:
            return str(error) or type(error).__name__
        except Exception as error:
            # For example the mail library stumbles over an address; messages of others must still be sent.
            log.exception("Notification %s cannot be sent", delivery.id)
            return f"It cannot be sent: {type(error).__name__}"
        return ""

    async def _remove_old(self, now: Millis) -> None:
        where = (Where("created_at", Comparison.BELOW, now - _KEPT),)
        old = await self._store.find(Query(collection=DELIVERIES, where=where, limit=200))
        if old:
            await self._store.commit(Change(writes=tuple(Delete(DELIVERIES, one.id) for one in old)))
