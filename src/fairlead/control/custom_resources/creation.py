"""Creates the custom resource of a workload that came in another way, as over REST. Called by `loop.py`."""

import logging
import time
from collections.abc import Callable

import msgspec

from fairlead.control.context import Context
from fairlead.control.custom_resources.reader import owned_by_system
from fairlead.engines.base import CustomResources
from fairlead.formats.custom_resource import render_content
from fairlead.kinds import KINDS
from fairlead.model.custom_resource import NewResource
from fairlead.model.dialect import Dialect
from fairlead.model.errors import Refused
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.records.workload import Workload

log = logging.getLogger(__name__)


class ResourceCreation:
    def __init__(
        self,
        context: Context,
        objects: CustomResources,
        watch_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`watch_seconds`: how long a created object is waited for, before it counts as deleted by somebody."""
        self._context = context
        self._objects = objects
        self._watch_seconds = watch_seconds
        self._now = now
        #: Workloads whose object this server created, with the time until which the watch may take to show it with its
        #: workload's id.
        self._created: dict[str, float] = {}
        #: Workloads whose object the cluster does not accept.
        self._refused: set[str] = set()

    async def create(self, workload: Workload) -> bool:
        """Create its object, if it can have one; whether that is settled. Otherwise it is to be checked later.

        It is not settled while another object, such as one being deleted, has its name, nor before the watch shows the
        created object: somebody may delete it before that.
        """
        wanted = self._render_new(workload)
        if wanted is None or workload.id in self._refused:
            return True
        if self._now() < self._created.get(workload.id, 0.0):
            return False
        try:
            if await self._objects.create(wanted):
                self._created[workload.id] = self._now() + self._watch_seconds
            else:
                log.info("%s %s/%s exists already", wanted.kind, wanted.namespace, wanted.name)
        except Refused as error:
            # It runs without an object: a spec of an older dialect may break rules of the definition.
            self._refused.add(workload.id)
            log.warning("workload %s has no custom resource: %s", workload.id, error)
            return True
        return False

    def forget(self, workload_id: str) -> None:
        """The watch shows the object of this workload, or it needs none any more."""
        self._created.pop(workload_id, None)

    def _render_new(self, workload: Workload) -> NewResource | None:
        """The object of a workload; None if the cluster or the namespace cannot have one."""
        kind = KINDS[workload.kind]
        project = self._context.directory.projects.get(workload.project_id)
        if workload.dialect is Dialect.OBJECT:
            # Its manifest is its object.
            return None
        if project is None or not self._objects.is_installed(kind.resource):
            return None
        if self._objects.find_other_installation(project.namespace):
            return None
        is_wanted = workload.desired_phase is not DesiredPhase.STOPPED
        content = render_content(kind, msgspec.json.decode(workload.spec), workload.name, is_active=is_wanted)
        owner = {"userId": {"value": workload.created_by}} if "userId" in owned_by_system(workload.kind) else {}
        return NewResource(
            workload_id=workload.id,
            kind=kind.resource,
            namespace=project.namespace,
            name=workload.name,
            labels=content.labels,
            annotations=content.annotations,
            spec={**content.spec, **owner},
        )
