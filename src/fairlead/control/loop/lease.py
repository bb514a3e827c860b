"""The lease on an engine: held by one server at a time, kept in the store.

A server that stops releases it. If a server dies, the lease expires, or the next server sees that the process is gone.
Called by `engine_host.py`.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fairlead.control.context import Context
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import Conflict, Refused, Unavailable
from fairlead.model.records.lease import Lease
from fairlead.store.base import Change, Delete, Put, Query
from fairlead.store.collections import LEASES

log = logging.getLogger(__name__)

DURATION: Millis = 15 * SECOND
_RENEWALS = 3


@dataclass
class LeaseKeeper:
    context: Context
    #: The machine's name, and its holder: a text by which `is_dead` tells whether that process is gone.
    name: str
    holder: str
    #: The address at which other servers reach this one, and the one at which it serves workloads' URLs.
    address: str
    urls: str
    is_dead: Callable[[str], bool]
    lease: Lease | None = None

    async def acquire(self) -> None:
        """Raises `Refused` while another server that may be alive holds it."""
        now = self.context.clock()
        await self._check_others(now)
        previous: Lease | None = await self.context.store.get(LEASES, self.name)
        lease = Lease(
            id=self.name,
            version=previous.version + 1 if previous else 1,
            holder=self.holder,
            expires_at=now + DURATION,
            address=self.address,
            urls=self.urls,
        )
        try:
            await self.context.store.commit(Change(writes=(Put(LEASES, lease),)))
        except Conflict:
            raise Refused(f"Another server has just taken machine {self.name}") from None
        self.lease = lease
        try:
            # Two servers with different names may have checked at the same time: then neither stays.
            await self._check_others(now)
        except Refused:
            await self.release()
            raise

    async def _check_others(self, now: Millis) -> None:
        """Only one server runs the workloads of a database, whatever its name: two loops would run them twice."""
        leases: list[Lease] = await self.context.store.find(Query(collection=LEASES))
        for other in leases:
            if other.is_held_by_other(self.holder, now) and not self.is_dead(other.holder):
                raise Refused(
                    f"Another server runs machine {other.id} of this database ({other.holder} at "
                    f"{other.address or 'no address'}). Stop that server, or start this one with --api-only."
                )

    async def keep(self, lost: Callable[[], None]) -> None:
        """Renew it for ever; calls `lost` when another server has taken it."""
        while self.lease is not None:
            await asyncio.sleep(DURATION / 1000 / _RENEWALS)
            renewed = msgspec.structs.replace(
                self.lease, version=self.lease.version + 1, expires_at=self.context.clock() + DURATION
            )
            try:
                is_kept = await self._renew(renewed)
            except Unavailable as error:
                log.warning("the lease on %s could not be renewed: %s", self.name, error)
                continue
            if is_kept is None:
                self.lease = None
                lost()
                return
            self.lease = is_kept

    async def _renew(self, renewed: Lease) -> Lease | None:
        """The current lease; None if another server has it."""
        try:
            await self.context.store.commit(Change(writes=(Put(LEASES, renewed),)))
        except Conflict:
            # A renewal without an answer may have succeeded: then the newer lease is ours.
            stored: Lease | None = await self.context.store.get(LEASES, self.name)
            return stored if stored is not None and stored.holder == self.holder else None
        return renewed

    async def release(self) -> None:
        if self.lease is not None:
            stored: Lease | None = await self.context.store.get(LEASES, self.name)
            if stored is not None and stored.holder == self.holder:
                await self.context.store.commit(Change(writes=(Delete(LEASES, self.name),)))
            self.lease = None
