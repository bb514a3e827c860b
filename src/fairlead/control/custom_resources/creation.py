"""Creates the custom resource of a workload that came in another way, as over REST. Called by `loop.py`."""

import logging

import msgspec

from fairlead.control.context import Context
from fairlead.control.custom_resources.reader import owned_by_system
from fairlead.engines.base import CustomResources, NewResource
from fairlead.formats.custom_resource import render_content
from fairlead.kinds import KINDS
from fairlead.model.errors import Refused
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.records.workload import Workload

log = logging.getLogger(__name__)


class ResourceCreation:
    def __init__(self, context: Context, objects: CustomResources) -> None:
        self._context = context
        self._objects = objects
        #: Workloads whose object this server created, until the watch shows it with its workload's id.
        self._created: set[str] = set()
        #: Workloads whose object the cluster does not accept.
        self._refused: set[str] = set()

    async def create(self, workload: Workload) -> bool:
        """Create its object, if it can have one; False if another object, such as one being deleted, has its name."""
        wanted = self._render_new(workload)
        if wanted is None or workload.id in self._created | self._refused:
            return True
        self._created.add(workload.id)
        is_created = False
        try:
            is_created = await self._objects.create(wanted)
            if not is_created:
                log.info("%s %s/%s exists already", wanted.kind, wanted.namespace, wanted.name)
        except Refused as error:
            # It runs without an object: a spec of an older dialect may break rules of the definition.
            self._refused.add(workload.id)
            log.warning("workload %s has no custom resource: %s", workload.id, error)
            return True
        finally:
            if not is_created:
                self._created.discard(workload.id)
        return is_created

    def note_seen(self, workload: Workload) -> None:
        """The watch shows the object of this workload."""
        self._created.discard(workload.id)

    def _render_new(self, workload: Workload) -> NewResource | None:
        """The object of a workload; None if the cluster or the namespace cannot have one."""
        kind = KINDS[workload.kind]
        project = self._context.directory.projects.get(workload.project_id)
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
