"""Carries out planned steps on the cluster, each of them idempotent.

`reconciler.py` calls it. A step raises `Refused` if the cluster does not accept the workload; any other error means
that the step is to be retried.
"""

import asyncio
import contextlib
from collections.abc import Collection, Set

import msgspec

from fairlead.engines.base import DeleteWorkload, DesiredWorkload
from fairlead.engines.kubernetes.apply.applier import ObjectApplier
from fairlead.engines.kubernetes.apply.deleter import OwnedObjects
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.resources import (
    CLAIM,
    CONFIG_MAP,
    INGRESS,
    KNATIVE,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM_TEMPLATE,
    SECRET,
    SERVICE,
    Resource,
    controller_by_key,
    find_resource,
    remember_kind,
    resource_of,
)
from fairlead.engines.kubernetes.client.writer import (
    BlockedForNow,
    discover_kind,
    has_kind,
    has_knative_features,
    missing_right,
)
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.plan import planner
from fairlead.engines.kubernetes.plan.existing_objects import ExistingObjects, find_digests
from fairlead.engines.kubernetes.plan.launch import find_launch_choices
from fairlead.engines.kubernetes.plan.node_pools import decide_pool
from fairlead.engines.kubernetes.render import review
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.knative import FEATURES
from fairlead.engines.kubernetes.render.kubeflow import operator_of
from fairlead.engines.kubernetes.render.workload import kinds_for
from fairlead.model.allowed import Allowed
from fairlead.model.errors import Refused

#: Seconds after which a deletion asks the API server again what is left, without a change in the watches.
_ASK_AGAIN = 5.0
#: Seconds that the cluster's garbage collector gets for the pods of deleted controllers, before they are deleted here.
_FIRST_WAIT = 2.0
#: Seconds between the last object in the watches and the question to the API server: not all kinds are watched.
_SETTLE = 0.1
#: Seconds that the watch gets to show created pods, before the next plan creates those that are missing.
_SHOWN_WITHIN = 2.0
#: Workloads whose objects are written at the same time; the others wait without having been rendered.
_AT_ONCE = 32
#: Kinds of which only the API server knows whether anything is left.
_UNWATCHED = frozenset({INGRESS, SERVICE, SECRET, CONFIG_MAP, RESOURCE_CLAIM_TEMPLATE, CLAIM})


class Executor:
    def __init__(
        self, api: Api, applier: ObjectApplier, cache: ClusterCache, organization: OrganizationSync, allowed: Allowed
    ) -> None:
        self._api = api
        self._applier = applier
        self._cache = cache
        self._organization = organization
        self._allowed = allowed
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        #: Lists our objects that are not watched; None until the server knows its workloads.
        self.listing: asyncio.Task[OwnedObjects] | None = None
        #: Workloads that were recorded before this server started; None until it knows them.
        self.known_at_start: Set[str] | None = None

    async def execute(self, step: planner.Step, changed: "Changed") -> None:
        """Carry out a step for which nothing but the step itself is needed."""
        match step:
            case planner.DeletePods(pods):
                for pod in pods:
                    path = POD.path(pod.metadata.namespace, pod.metadata.name)
                    await self._applier.delete(path, pod.metadata.uid)
            case planner.WaitFor(message):
                raise BlockedForNow(message)
            case planner.AnnotateGroup(group, annotations):
                await self._applier.annotate_group(group, annotations)
            case planner.CreatePods(workload, members, attempt):
                created = await self._applier.create_members(workload, members, attempt)
                await self._wait_until_shown(workload.workload_id, created, changed)
            case planner.RecreateJob(workload, resource, uid, launch):
                await self._applier.delete_for_next_attempt(workload, resource, uid, launch)
            case planner.MoveToNextPool(workload, group):
                # The watch on pods may be behind: a pod that has a node by now keeps the group where it is.
                choice = decide_pool(group, await self._applier.load_pods(workload), workload.tried_pools)
                if choice is not None:
                    await self._applier.move_group(workload, group, *choice)

    async def _wait_until_shown(self, workload_id: str, uids: Set[str], changed: "Changed") -> None:
        """Wait for created pods in the watch: a plan without them would create them again."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + _SHOWN_WITHIN
        while (seconds_left := give_up - loop.time()) > 0:
            if uids <= {pod.metadata.uid for pod in self._cache.objects_of(workload_id).pods}:
                break
            await changed.wait(seconds_left)
        # What came meanwhile has not been planned for.
        changed.set()

    # Applying

    async def choose_launch(self, workload: DesiredWorkload, previous: LaunchChoices) -> LaunchChoices:
        """Existing objects keep their launch choices; new ones are launched with what the cluster offers now."""
        await self._organization.check(workload)
        if workload.manifest:
            await self._watch_kind_of(workload.manifest)
        existing = find_launch_choices(workload, self._cache.objects_of(workload.workload_id))
        # Pod templates of a user's object can change while it exists.
        if (
            existing is not None
            and workload.manifest
            and (message := review.forbidden_in(workload.podsets, self._allowed, ""))
        ):
            raise Refused(message)
        if existing is not None:
            return existing
        level = self._cache.enforced_pod_security(workload.namespace)
        if message := review.forbidden_in(workload.podsets, self._allowed, level):
            raise Refused(message)
        wanted = () if workload.manifest else kinds_for(workload.podsets, level)
        kinds = [resource.kind for resource in wanted if await self._has_kind(resource)]
        if KNATIVE.kind in kinds:
            choices = LaunchChoices(kinds=frozenset(kinds))
            kinds = kinds if await self._applier.is_accepted_by_cluster(workload, choices) else []
        if kinds and operator_of(workload.podsets) is not None:
            noted = await self._applier.load_launch_choices(workload)
            previous = max(previous, noted, key=lambda choices: choices.attempt)
        selectors = self._applier.sources.find_pool_selectors(workload)
        return msgspec.structs.replace(
            previous, kinds=frozenset(kinds), level=level, queue="", pool_selectors=selectors
        )

    async def _has_kind(self, resource: Resource) -> bool:
        """Whether the cluster has this kind now; a kind that was installed after our start is watched from now on."""
        if not await has_kind(self._api, resource):
            return False
        if resource is KNATIVE and not await has_knative_features(self._api, FEATURES):
            return False
        await self._watch(resource)
        return True

    async def _watch(self, resource: Resource) -> None:
        if resource not in self._applier.kinds.runners:
            await self._cache.add(resource)
            self._applier.kinds.add_runner(resource)

    async def _watch_kind_of(self, manifest: bytes) -> None:
        """Watch the kind of a user's object. Raises Refused if the cluster does not have it."""
        body = msgspec.json.decode(manifest)
        if find_resource(body) in self._applier.kinds.runners:
            return
        resource = await discover_kind(self._api, body["apiVersion"], body["kind"])
        if resource is None:
            what = f"{body['kind']} ({body['apiVersion']})"
            raise Refused(f"The cluster has no {what} in namespaces; install its controller and submit it again")
        remember_kind(resource)
        try:
            await self._watch(resource)
        except ApiError as error:
            if error.status == 403:
                raise BlockedForNow(missing_right(resource, "list and watch")) from error
            raise

    async def apply(self, workload: DesiredWorkload, launch: LaunchChoices, *, may_predate_server: bool) -> None:
        """Create or update all objects of a workload."""
        existing = await self._find_existing(workload, may_predate_server=may_predate_server)
        if may_predate_server:
            id = workload.workload_id
            self._applier.written.begin(id, may_have_others=self._may_have_others(id))
        try:
            async with self._at_once:
                is_sent = await self._applier.apply_workload(workload, launch, existing)
        except ApiError as error:
            await self._organization.recheck_namespace(workload, error)
            if error.status == 403 and workload.manifest:
                resource = resource_of(msgspec.json.decode(workload.manifest))
                raise BlockedForNow(missing_right(resource, "create, change and delete")) from error
            raise
        if may_predate_server and not is_sent and self.listing is not None and self.listing.done():
            # All of it existed when our objects were listed, so it has no others.
            self._applier.written.note_all(workload.workload_id, self._find_listed(workload))

    async def _find_existing(self, workload: DesiredWorkload, *, may_predate_server: bool) -> ExistingObjects:
        """The controllers that the watches show, and other objects: those of a start, or those of this server."""
        digests = find_digests(self._cache.controllers_of(workload.workload_id), workload.run)
        if not may_predate_server:
            return ExistingObjects(digests, self._applier.written.objects_of(workload.workload_id))
        if self.listing is None:
            return ExistingObjects(digests, {})
        if any(digests.values()):
            await asyncio.wait((self.listing,))
        return ExistingObjects(digests, self.listing.result().survey if self.listing.done() else {})

    # Deleting

    async def delete(self, order: DeleteWorkload, changed: "Changed") -> None:
        """Delete everything of a workload; returns when the API server itself has nothing of it any more."""
        id = order.workload_id
        if order.manifest:
            # A controller that was uninstalled took its objects with it.
            with contextlib.suppress(Refused):
                await self._watch_kind_of(order.manifest)
        kinds = self._applier.written.find(id)
        is_sure = kinds is not None or not self._may_have_others(id)
        deleted_kinds: Collection[Resource] = await self._delete_known(
            order, kinds or self._find_listed(order), changed
        )
        if not is_sure:
            deleted_kinds = self._applier.kinds_of_workloads()
        while await self._applier.delete_workload(order, deleted_kinds):
            await self._wait_until_gone(id, changed)
        self._applier.written.forget(id, keeps_claims=order.keeps_claims)
        self._cache.forget(id)

    async def _delete_known(
        self, order: DeleteWorkload, kinds: Collection[Resource], changed: "Changed"
    ) -> set[Resource]:
        """Delete what the watches show, and what is not watched of these kinds; returns the kinds to ask for then."""
        id = order.workload_id
        deleted_kinds = {POD, *kinds}
        deleted = await self._delete_watched(id)
        deleted |= {kind for kind in deleted_kinds & _UNWATCHED if await self._is_deleted_by_name(id, kind)}
        unwatched = (deleted_kinds & _UNWATCHED) - deleted
        if unwatched:
            await self._applier.delete_workload(order, unwatched)
        if unwatched or self._cache.has_objects(id):
            await self._wait_until_gone(id, changed, _FIRST_WAIT)
        # A request may have had no effect, and a watch may be behind: only what it shows to be gone is.
        existing = {controller_by_key(kind) for kind, _ in self._cache.controllers_of(id)}
        return (deleted_kinds - deleted) | existing | ({POD} if self._cache.objects_of(id).pods else set())

    async def _is_deleted_by_name(self, workload_id: str, kind: Resource) -> bool:
        """Delete the objects of a kind that this server wrote; whether all are known by name, and gone."""
        uids = self._applier.written.find_uids(workload_id, kind)
        return uids is not None and all([await self._applier.delete(path, uid) for path, uid in uids.items()])

    async def _delete_watched(self, workload_id: str) -> set[Resource]:
        """Delete the controllers that the watches show, and pods that have none; returns the kinds that need no list.

        Those are the kinds of the controllers, and pods if the watch knows all of them and nothing creates more.
        """
        controllers = list(self._cache.controllers_of(workload_id))
        for kind, metadata in controllers:
            await self._applier.delete_object(controller_by_key(kind), metadata)
        kinds = {controller_by_key(kind) for kind, _ in controllers}
        pods = [pod.metadata for pod in self._cache.objects_of(workload_id).pods]
        alone = [pod for pod in pods if not any(owner.controller for owner in pod.owner_references)]
        is_complete = await self._applier.delete_pods(alone)
        return kinds | {POD} if is_complete and len(alone) == len(pods) and kinds == {POD_GROUP} else kinds

    def _find_listed(self, workload: DesiredWorkload | DeleteWorkload) -> Collection[Resource]:
        """The kinds that are not watched of which it had objects when the server started, as far as that is known."""
        if self.listing is None or not self.listing.done():
            return ()
        return self.listing.result().kinds.get((workload.workload_id, workload.namespace), ())

    def _may_have_others(self, workload_id: str) -> bool:
        """Whether the workload may have objects that this server did not write."""
        if self.known_at_start is None or self.listing is None or not self.listing.done():
            return True
        earlier = self.listing.result().workload_ids
        return workload_id in self.known_at_start or workload_id in earlier or self._cache.has_objects(workload_id)

    async def _wait_until_gone(self, workload_id: str, changed: "Changed", seconds: float = _ASK_AGAIN) -> None:
        loop = asyncio.get_running_loop()
        ask_again = loop.time() + seconds
        while self._cache.has_objects(workload_id) and (seconds_left := ask_again - loop.time()) > 0:
            await changed.wait(seconds_left)
        await asyncio.sleep(_SETTLE)


class Changed:
    """Whether something of a workload has changed in the cluster, or in what is desired of it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, seconds: float) -> None:
        """Returns at the next change, or when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
