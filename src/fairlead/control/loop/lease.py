"""The right to run one machine's pods: held by one server at a time, kept in the store.

A server that ends gives it back; one that dies leaves it to expire, or to the next server that can see that its
process is gone. Called by `machine.py`.
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
    #: The machine's name, and who holds it (a text by which `is_dead` can tell whether that process is gone).
    name: str
    holder: str
    #: Where other servers reach this one, and where it serves workloads' URLs.
    address: str
    urls: str
    is_dead: Callable[[str], bool]
    lease: Lease | None = None

    async def take(self) -> None:
        """Raises `Refused` while another server that may be alive holds it."""
        now = self.context.clock()
        await self._check_others(now)
        known: Lease | None = await self.context.store.get(LEASES, self.name)
        lease = Lease(
            id=self.name,
            version=known.version + 1 if known else 1,
            holder=self.holder,
            expires_at=now + DURATION,
            address=self.address,
            urls=self.urls,
        )
        try:
            await self.context.store.commit(Change(writes=(Put(LEASES, lease),)))
        except Conflict:
            raise Refused(f"Machine {self.name} was taken by another server at this moment") from None
        self.lease = lease
        try:
            # Two under different names may have looked at the same time: neither stays then.
            await self._check_others(now)
        except Refused:
            await self.release()
            raise

    async def _check_others(self, now: Millis) -> None:
        """One server runs the pods of a database, whatever its machine is called: two loops would run them twice."""
        leases: list[Lease] = await self.context.store.find(Query(collection=LEASES))
        for other in leases:
            if other.is_held_by_other(self.holder, now) and not self.is_dead(other.holder):
                raise Refused(
                    f"Machine {other.id} of this database is run by another server ({other.holder} at "
                    f"{other.address or 'no address'}). Stop that one, or start this one with --api-only."
                )

    async def keep(self, lost: Callable[[], None]) -> None:
        """Renew for ever; calls `lost` when another server took it."""
        while self.lease is not None:
            await asyncio.sleep(DURATION / 1000 / _RENEWALS)
            renewed = msgspec.structs.replace(
                self.lease, version=self.lease.version + 1, expires_at=self.context.clock() + DURATION
            )
            try:
                kept = await self._renew(renewed)
            except Unavailable as error:
                log.warning("the lease on %s could not be renewed: %s", self.name, error)
                continue
            if kept is None:
                self.lease = None
                lost()
                return
            self.lease = kept

    async def _renew(self, renewed: Lease) -> Lease | None:
        """The lease as it stands now; None if another server has it."""
        try:
            await self.context.store.commit(Change(writes=(Put(LEASES, renewed),)))
        except Conflict:
            # A renewal whose answer never came may have been made: then the newer lease is our own.
            stored: Lease | None = await self.context.store.get(LEASES, self.name)
            return stored if stored is not None and stored.holder == self.holder else None
        return renewed

    async def release(self) -> None:
        if self.lease is not None:
            stored: Lease | None = await self.context.store.get(LEASES, self.name)
            if stored is not None and stored.holder == self.holder:
                await self.context.store.commit(Change(writes=(Delete(LEASES, self.name),)))
            self.lease = None
