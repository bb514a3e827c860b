"""What the engine does in the cluster, one workload or object at a time: apply, remove, and make sure that it is gone.

`engine.py` calls it with orders. Objects that are not ours are never touched; every act may be done twice.
"""

import importlib.resources
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any

import msgspec

from fairlead.engines.base import DeleteWorkload, DesiredWorkload
from fairlead.engines.kubernetes.client.api import APPLY, MERGE, Api, ApiError
from fairlead.engines.kubernetes.client.objects import Metadata, Pod, PodGroup
from fairlead.engines.kubernetes.client.resources import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    INGRESS,
    JOB,
    KNATIVE,
    MPI,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
    Resource,
    path_of,
)
from fairlead.engines.kubernetes.client.writer import (
    APPLY_QUERY,
    MANAGER,
    BlockedForNow,
    ListedObjects,
    ObjectWriter,
    StoredObject,
    has_kind,
)
from fairlead.engines.kubernetes.observe.bucket_uploads import has_buckets
from fairlead.engines.kubernetes.observe.operator_jobs import RecreationNote, note_name, read_note, render_note
from fairlead.engines.kubernetes.plan.applied_state import (
    AppliedState,
    Survey,
    annotate_digest,
    data_hash,
    is_up_to_date,
)
from fairlead.engines.kubernetes.plan.node_pools import decide_pool, render_move
from fairlead.engines.kubernetes.render.buckets import FILES, PACKAGE, render_program
from fairlead.engines.kubernetes.render.context import (
    CLAIM_LABEL,
    CLUSTER_LABEL,
    EPHEMERAL_LABEL,
    ID_LABEL,
    NO_LAUNCH_CHOICES,
    RUN_LABEL,
    LaunchChoices,
    Owner,
    RenderContext,
)
from fairlead.engines.kubernetes.render.copies import copies_of, render_copies
from fairlead.engines.kubernetes.render.organization import project_queue, queue_pool
from fairlead.engines.kubernetes.render.pod_group import (
    COMPLETED,
    FAILURES,
    count_failures,
    decide_group,
    failures_of,
    render_member,
)
from fairlead.engines.kubernetes.render.review import refusal_of
from fairlead.engines.kubernetes.render.volumes import render_kept_claim
from fairlead.engines.kubernetes.render.workload import RenderedObjects, render_objects
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import KeptObjects, LoadKept, nothing_kept
from fairlead.model.pods.urls import IngressSettings

#: A version that no object has: what is applied with it is made, and never changed.
_NEVER = "1"


class _Pods(msgspec.Struct):
    items: tuple[Pod, ...] = ()


class _Features(msgspec.Struct):
    data: dict[str, str] = {}


def _nobody(workload_id: str) -> Owner | None:
    """Where no workload came from an object of the cluster."""
    return None


def _none_enforced(namespace: str) -> str:
    return ""


class ObjectApplier(ObjectWriter):
    def __init__(
        self,
        api: Api,
        cluster: str,
        runners: tuple[Resource, ...],
        owner: Callable[[str], Owner | None] = _nobody,
        load_kept: LoadKept = nothing_kept,
    ) -> None:
        super().__init__(api)
        self._cluster = cluster
        self._owner = owner
        self._load_kept = load_kept
        #: Kinds that make pods and are installed here, and pod groups if they are.
        self.runners = runners
        self.groups: tuple[Resource, ...] = ()
        #: The level of Pod Security that a namespace enforces now.
        self.level: Callable[[str], str] = _none_enforced
        #: The way in for URLs, where Ingress objects are wanted.
        self.entrance: IngressSettings | None = None

    @property
    def _ingresses(self) -> tuple[Resource, ...]:
        """Asked for only where they are made: elsewhere our account may not look at them."""
        return (INGRESS,) if self.entrance else ()

    def render_context(self, run: DesiredWorkload, begun: LaunchChoices = NO_LAUNCH_CHOICES) -> RenderContext:
        queue = begun.queue or project_queue(run.project, run.tried_pools)
        return RenderContext(
            name=run.name,
            namespace=run.namespace,
            project=run.project,
            queue=queue,
            priority_class=run.priority_class,
            is_preemptible=run.is_preemptible,
            pools=run.node_pools,
            pool=queue_pool(run.project, queue) if run.node_pools else "",
            ownership_labels={CLUSTER_LABEL: self._cluster, ID_LABEL: run.workload_id, RUN_LABEL: str(run.run)},
            identity=run.identity,
            owner=self._owner(run.workload_id),
            begun=begun,
            level=self.level(run.namespace) if begun.level is None else begun.level,
            urls=run.urls,
            ingress=self.entrance,
        )

    def render_context_with_supplies(
        self, run: DesiredWorkload, kept: KeptObjects, begun: LaunchChoices = NO_LAUNCH_CHOICES
    ) -> RenderContext:
        """Where it goes, and what of the server's it finds there."""
        copies, volumes = copies_of(run.name, kept), dict(kept.data_volumes)
        return msgspec.structs.replace(self.render_context(run, begun), copies=copies, data_volumes=volumes)

    async def run(
        self, run: DesiredWorkload, begun: LaunchChoices = NO_LAUNCH_CHOICES, standing: AppliedState | None = None
    ) -> None:
        """Make or change everything of a workload; raises Refused when the cluster does not take it."""
        if words := refusal_of(run.podsets, begun.kinds):
            raise Refused(words)
        kept = await self._load_kept(run.workload_id, run.podsets)
        place = self.render_context_with_supplies(run, kept, begun)
        rendered = render_objects(place, run.podsets)
        self._check(rendered)
        copies = (*render_copies(place, kept), *_programs(place, run.podsets))
        claims = (*(render_kept_claim(one, place) for one in kept.claims.values()), *rendered.claims)
        digest = annotate_digest(rendered)
        if standing and is_up_to_date(standing, digest, (*copies, *claims, *rendered.runners, *rendered.services)):
            return
        for copy in copies:
            await self.apply_ours(copy, run)
        for claim in claims:
            if await self._api.find(path_of(claim)) is None:
                await self._apply(claim)
        first: StoredObject | None = None
        for runner in rendered.runners:
            made = await self.apply_ours(runner, run)
            first = first or made
        for service in rendered.services:
            if first is not None:
                service["metadata"]["ownerReferences"] = [_reference(rendered.runners[0], first.metadata.uid)]
            await self.apply_ours(service, run)
        if any(podset.revision for podset in run.podsets) and KNATIVE.kind not in begun.kinds:
            await self._prune(run, {runner["metadata"]["name"] for runner in rendered.runners})

    async def _prune(self, run: DesiredWorkload, wanted: Collection[str]) -> None:
        """Remove what made the pods of revisions that are no more."""
        label = f"{ID_LABEL}={run.workload_id}"
        found = await self._api.get(DEPLOYMENT.path(run.namespace), labelSelector=label)
        for item in msgspec.json.decode(found, type=ListedObjects).items:
            if item.metadata.name not in wanted:
                await self.delete(DEPLOYMENT.path(run.namespace, item.metadata.name), item.metadata.uid)

    def _check(self, rendered: RenderedObjects) -> None:
        installed = {(runner.api, runner.kind) for runner in self.runners}
        for runner in () if rendered.members else rendered.runners:
            if (runner["apiVersion"], runner["kind"]) not in installed:
                what = f"{runner['kind']} ({runner['apiVersion']})"
                raise Refused(f"The cluster has no {what}; install its controller and submit the workload again")

    async def apply_ours(self, body: dict[str, Any], run: DesiredWorkload) -> StoredObject:
        """Apply an object of a workload unless one of that name is somebody else's."""
        made = await self._apply_to(body, {"resourceVersion": _NEVER})
        if made is None and (known := await self._find(path_of(body))):
            self._claim(known, body, run)
            made = await self._apply_to(body, {"uid": known.metadata.uid})
        if made is None:
            raise BlockedForNow(f"{body['kind']} {body['metadata']['name']} changed while it was applied")
        return made

    def _claim(self, known: StoredObject, body: dict[str, Any], run: DesiredWorkload) -> None:
        """Raises unless what is there of that name is of this very run."""
        labels = known.metadata.labels
        if labels.get(ID_LABEL) == run.workload_id and known.metadata.deletion_timestamp is None:
            if labels.get(RUN_LABEL) == str(run.run):
                return
        elif labels.get(CLUSTER_LABEL) != self._cluster:
            whose = "is another Fairlead's" if CLUSTER_LABEL in labels else "is not Fairlead's"
            raise Refused(
                f"{body['kind']} {body['metadata']['name']} exists in namespace {run.namespace} and {whose}; "
                "choose another name for the workload, or remove that object"
            )
        raise BlockedForNow(f"{body['kind']} {body['metadata']['name']} of before is still being removed")

    async def _apply_to(self, body: dict[str, Any], condition: dict[str, str]) -> StoredObject | None:
        """Apply on a condition, in one request with it; None if the cluster has another object than was thought."""
        try:
            return await self._apply({**body, "metadata": {**body["metadata"], **condition}}, is_exact=True)
        except ApiError as error:
            if error.status == 409:
                return None
            raise

    async def reconcile_pod_group(
        self, run: DesiredWorkload, group: PodGroup, pods: Collection[Pod], *, is_complete: bool
    ) -> None:
        """Make and remove pods of a group of our own, as it needs now."""
        failures = count_failures(group, pods)
        plan = decide_group(run.podsets, pods, failures, is_complete=is_complete)
        await self._note(group, failures + plan.is_broken, is_complete=is_complete)
        uids = {pod.metadata.name: pod.metadata.uid for pod in pods}
        for name in plan.remove:
            await self.delete(POD.path(run.namespace, name), uids[name])
        if plan.make:
            kept = await self._load_kept(run.workload_id, run.podsets)
            render_context = self.render_context_with_supplies(run, kept)
            shapes = {shape.podset.role: shape for shape in render_objects(render_context, run.podsets).members}
            for role, index in plan.make:
                await self._make(render_member(render_context, shapes[role], index, failures))

    async def _note(self, group: PodGroup, failures: int, *, is_complete: bool) -> None:
        """Write on a group of our own what is to be known when its pods are gone."""
        notes = {FAILURES: str(failures)} if failures > failures_of(group) else {}
        if is_complete and COMPLETED not in group.metadata.annotations:
            notes[COMPLETED] = "true"
        if notes:
            # This very group, and none that was made of the same name meanwhile.
            change = {"metadata": {"uid": group.metadata.uid, "annotations": notes}}
            path = POD_GROUP.path(group.metadata.namespace, group.metadata.name)
            await self._api.request("PATCH", path, change, query={"fieldManager": MANAGER}, content=MERGE)

    async def try_pools(self, run: DesiredWorkload, groups: Collection[PodGroup], pods: Collection[Pod]) -> None:
        """Move pod groups that found no room, or whose pool is gone, to the next of their workload's pools."""
        for group in groups:
            decided = decide_pool(group, pods, run.tried_pools)
            if decided is not None:
                # A pod may have its place since: then the group stays where it is.
                decided = decide_pool(group, await self.load_pods(run), run.tried_pools)
            if decided is not None:
                change = render_move(run.project, *decided)
                path = POD_GROUP.path(run.namespace, group.metadata.name)
                await self._api.request("PATCH", path, change, query={"fieldManager": MANAGER}, content=MERGE)

    async def _make(self, pod: dict[str, Any]) -> None:
        """A pod of that name that is there, perhaps still ending, is left alone; the next look decides."""
        try:
            path = POD.path(pod["metadata"]["namespace"])
            await self._api.request("POST", path, pod, query={"fieldManager": MANAGER})
        except ApiError as error:
            if error.status in (400, 422):
                raise Refused(f"The cluster does not take pod {pod['metadata']['name']}: {error}") from error
            if error.status != 409:
                raise

    async def remake(self, run: DesiredWorkload, resource: Resource, uid: str, again: LaunchChoices) -> None:
        """Remove a job that is to begin again; its object goes after its pods, so that their names are free then.

        With what it begins again is written down first: it may be another server that makes it.
        """
        await self.apply_ours(render_note(self.render_context(run), again), run)
        await self.delete(resource.path(run.namespace, run.name), uid, propagation="Foreground")

    async def load_launch_choices(self, run: DesiredWorkload) -> LaunchChoices:
        """What was written down when a job of this run was last removed to begin again."""
        found = await self._api.find(CONFIG_MAP.path(run.namespace, note_name(run.name)))
        if found is None:
            return NO_LAUNCH_CHOICES
        return read_note(msgspec.json.decode(found, type=RecreationNote), self.render_context(run).ownership_labels)

    async def load_pods(self, run: DesiredWorkload) -> tuple[Pod, ...]:
        """A workload's pods as the API server has them."""
        found = await self._api.get(POD.path(run.namespace), labelSelector=f"{ID_LABEL}={run.workload_id}")
        return msgspec.json.decode(found, type=_Pods).items

    # Removal

    async def remove(self, order: DeleteWorkload, wait: Callable[[], Awaitable[None]]) -> None:
        """Remove a workload's objects and pods, and return when the API server itself has none of them any more."""
        label = f"{ID_LABEL}={order.workload_id}"
        claims = f"{label},{EPHEMERAL_LABEL}=true" if order.keeps_claims else label
        while True:
            left = 0
            for resource in (*self.runners, *self.groups, *self._ingresses, SERVICE, POD, SECRET, CONFIG_MAP):
                left += await self._remove_all(resource, order.namespace, label)
            left += await self._remove_all(CLAIM, order.namespace, claims)
            if not left:
                return
            await wait()

    async def _remove_all(self, resource: Resource, namespace: str, label: str) -> int:
        """Ask for the end of every object that carries the label; how many are still there."""
        try:
            listed = await self._api.get(resource.path(namespace), labelSelector=label)
        except ApiError as error:
            # The kind was uninstalled since, and its objects went with it.
            if error.status == 404:
                return 0
            raise
        found = msgspec.json.decode(listed, type=ListedObjects)
        for item in found.items:
            if item.metadata.deletion_timestamp is None:
                # What MPI's operator made bears no label of ours, and keeps the next job of that name from starting: so
                # the job goes after it.
                propagation = "Foreground" if resource is MPI else "Background"
                await self.delete(resource.path(namespace, item.metadata.name), item.metadata.uid, propagation)
        return len(found.items)

    async def delete_for_recreation(self, job: Metadata) -> None:
        """Remove this very Job, so that the next wish makes it again."""
        await self.delete(JOB.path(job.namespace, job.name), job.uid)

    async def is_accepted_by_cluster(self, run: DesiredWorkload, begun: LaunchChoices) -> bool:
        """Whether the cluster takes what would be made with these kinds, asked without making it. Knative checks more
        than the definition of its Service says: which members of pods it was told to accept, how long requests take."""
        place = self.render_context_with_supplies(run, await self._load_kept(run.workload_id, run.podsets), begun)
        for runner in render_objects(place, run.podsets).runners:
            query = {**APPLY_QUERY, "dryRun": "All"}
            try:
                await self._api.request("PATCH", path_of(runner), runner, query=query, content=APPLY)
            except ApiError as error:
                if error.status in (400, 422):
                    return False
                raise
        return True

    async def has_kind(self, resource: Resource) -> bool:
        return await has_kind(self._api, resource)

    async def has_features(self, names: Collection[str]) -> bool:
        """Whether Knative was told to accept these members of pods."""
        try:
            found = await self._api.get(CONFIG_MAP.path("knative-serving", "config-features"))
        except ApiError as error:
            if error.status in (403, 404):
                return False
            raise
        features = msgspec.json.decode(found, type=_Features).data
        return all(features.get(name) == "enabled" for name in names)

    async def list_owned_objects(self) -> tuple[Survey, set[tuple[str, str]]]:
        """What there is of ours that is not watched, and (id, namespace) of the workloads that it is of."""
        found: dict[str, int] = {}
        workloads: set[tuple[str, str]] = set()
        for resource in (*self._ingresses, SERVICE, CLAIM, SECRET, CONFIG_MAP):
            label = f"{CLUSTER_LABEL}={self._cluster}"
            listed = msgspec.json.decode(await self._api.get(resource.path(), labelSelector=label), type=ListedObjects)
            for item in listed.items:
                metadata = item.metadata
                if metadata.deletion_timestamp is None:
                    found[resource.path(metadata.namespace, metadata.name)] = data_hash(item.data)
                if id := metadata.labels.get(ID_LABEL):
                    workloads.add((id, metadata.namespace))
        return found, workloads

    async def drop_claims(self, is_gone: Callable[[str], bool]) -> None:
        """Remove claims that the server kept, by the ids of their records; pods that mount one keep it to their end."""
        label = f"{CLUSTER_LABEL}={self._cluster},{CLAIM_LABEL}"
        listed = msgspec.json.decode(await self._api.get(CLAIM.path(), labelSelector=label), type=ListedObjects)
        for item in listed.items:
            if is_gone(item.metadata.labels[CLAIM_LABEL]):
                await self.delete(CLAIM.path(item.metadata.namespace, item.metadata.name), item.metadata.uid)


def _programs(place: RenderContext, podsets: Iterable[PodSet]) -> list[dict[str, Any]]:
    """What containers beside its own run, where a workload has such containers."""
    if not has_buckets(podsets):
        return []
    folder = importlib.resources.files(PACKAGE)
    return [render_program(place, {name: folder.joinpath(name).read_text() for name in FILES})]


def _reference(body: dict[str, Any], uid: str) -> dict[str, Any]:
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": body["metadata"]["name"], "uid": uid}
