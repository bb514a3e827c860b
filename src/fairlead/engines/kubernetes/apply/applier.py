"""The requests that create and change a workload's objects, one workload or object at a time.

The executor and the engine call it. Objects that are not ours are never touched; every request may be sent twice.
"""

import importlib.resources
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import msgspec

from fairlead.engines.base import DesiredWorkload
from fairlead.engines.kubernetes.apply.deleter import ObjectDeleter
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.apply.written_kinds import WrittenKinds
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import APPLY, MERGE, Api, ApiError
from fairlead.engines.kubernetes.client.installed_kinds import InstalledKinds
from fairlead.engines.kubernetes.client.resources import (
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    KNATIVE,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM_TEMPLATE,
    Manifest,
    Resource,
    path_of,
    resource_of,
)
from fairlead.engines.kubernetes.client.writer import (
    APPLY_QUERY,
    MANAGER,
    BlockedForNow,
    ListedObjects,
    StoredObject,
)
from fairlead.engines.kubernetes.observe.bucket_uploads import has_buckets
from fairlead.engines.kubernetes.observe.events import is_checked, templates_of
from fairlead.engines.kubernetes.observe.operator_jobs import RecreationNote, read_note
from fairlead.engines.kubernetes.plan.existing_objects import (
    ExistingObjects,
    digest_of,
    is_up_to_date,
    with_digest,
)
from fairlead.engines.kubernetes.plan.node_pools import render_move
from fairlead.engines.kubernetes.render.buckets import FILES, PACKAGE, render_program
from fairlead.engines.kubernetes.render.context import (
    NO_LAUNCH_CHOICES,
    LaunchChoices,
    Owner,
    RenderContext,
)
from fairlead.engines.kubernetes.render.copies import copies_of, render_copies
from fairlead.engines.kubernetes.render.device_claims import CLASS_ANNOTATION
from fairlead.engines.kubernetes.render.kubeflow import note_name, render_note
from fairlead.engines.kubernetes.render.labels import (
    CLUSTER_LABEL,
    ID_LABEL,
    RUN_LABEL,
)
from fairlead.engines.kubernetes.render.organization import project_queue, queue_pool
from fairlead.engines.kubernetes.render.pod_group import render_member
from fairlead.engines.kubernetes.render.review import refusal_of
from fairlead.engines.kubernetes.render.volumes import render_kept_claim
from fairlead.engines.kubernetes.render.workload import RenderedObjects, render_objects
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import KeptObjects, LoadKept, nothing_kept
from fairlead.model.pods.urls import IngressSettings

#: A version that no object has: an object that is applied with it is created, and never changed.
_NEVER = "1"
_MERGE_QUERY = {"fieldManager": MANAGER}


class _Pods(msgspec.Struct):
    items: tuple[objects.Pod, ...] = ()


class RenderSources(NamedTuple):
    """Where the applier finds what a workload's objects depend on besides its desired state."""

    #: The custom resource of a workload, by the workload's id; None if it has none.
    find_owner: Callable[[str], Owner | None]
    #: The Pod Security level that a namespace enforces now.
    find_level: Callable[[str], str]
    #: Which labels the nodes of a workload's pools have now, for autoscalers of nodes (`LaunchChoices`).
    find_pool_selectors: Callable[[DesiredWorkload], tuple[str, ...]]
    load_kept: LoadKept = nothing_kept
    #: How URLs are reached from outside; None if no Ingress objects are wanted.
    ingress: IngressSettings | None = None


class ObjectApplier(ObjectDeleter):
    def __init__(
        self,
        api: Api,
        cluster_id: Callable[[], str],
        kinds: InstalledKinds,
        organization: OrganizationSync,
        sources: RenderSources,
    ) -> None:
        super().__init__(api, cluster_id, kinds, organization, has_ingresses=sources.ingress is not None)
        self.sources = sources
        self.written = WrittenKinds()

    # Rendering

    def render_context(self, run: DesiredWorkload, launch: LaunchChoices = NO_LAUNCH_CHOICES) -> RenderContext:
        queue = launch.queue or project_queue(run.project, run.tried_pools)
        return RenderContext(
            name=run.name,
            namespace=run.namespace,
            project=run.project,
            queue=queue,
            priority_class=run.priority_class,
            is_preemptible=run.is_preemptible,
            pools=run.node_pools,
            node_types=run.node_types,
            pool=queue_pool(run.project, queue) if run.node_pools else "",
            ownership_labels={CLUSTER_LABEL: self.cluster_id(), ID_LABEL: run.workload_id, RUN_LABEL: str(run.run)},
            identity=run.identity,
            owner=self.sources.find_owner(run.workload_id),
            launch=launch,
            level=self.sources.find_level(run.namespace) if launch.level is None else launch.level,
            urls=run.urls,
            ingress=self.sources.ingress,
        )

    async def _load_context(
        self, run: DesiredWorkload, launch: LaunchChoices = NO_LAUNCH_CHOICES
    ) -> tuple[RenderContext, KeptObjects]:
        """The context with the server's own objects that the workload gets, and these objects."""
        objects = await self.sources.load_kept(run.workload_id, run.podsets)
        copies, volumes = copies_of(run.name, objects), dict(objects.data_volumes)
        context = msgspec.structs.replace(self.render_context(run, launch), copies=copies, data_volumes=volumes)
        return context, objects

    # Applying

    async def apply_workload(
        self, run: DesiredWorkload, launch: LaunchChoices = NO_LAUNCH_CHOICES, existing: ExistingObjects | None = None
    ) -> bool:
        """Create or change all objects of a workload; raises Refused if the cluster does not accept one.

        `existing` is what is known to be there: if nothing would change, nothing is sent.
        Returns whether something was.
        """
        if message := refusal_of(run.podsets, launch.kinds):
            raise Refused(message)
        context, kept = await self._load_context(run, launch)
        rendered = render_objects(context, run.podsets, run.manifest)
        self._check_installed(rendered)
        copies = (*render_copies(context, kept), *_programs(context, run.podsets))
        claims = (*(render_kept_claim(one, context) for one in kept.claims.values()), *rendered.claims)
        digest = digest_of(rendered)
        runners = [with_digest(runner, digest) for runner in rendered.runners]
        if existing and is_up_to_date(existing, digest, (*copies, *claims, *runners, *rendered.services)):
            return False
        self.written.note(run.workload_id, map(resource_of, rendered.claims))
        for copy in copies:
            await self._apply_ours(copy, run)
        for claim in claims:
            if await self._api.find(path_of(claim)) is None:
                await self._apply(claim)
            self.written.note_accepted(run.workload_id, claim)
        stored = [await self._apply_ours(runner, run) for runner in runners]
        for service in rendered.services:
            owned = _owned_by(service, runners[0], stored[0].metadata.uid) if stored else service
            await self._apply_ours(owned, run)
        if any(podset.revision for podset in run.podsets) and KNATIVE.kind not in launch.kinds:
            await self._prune(run, {path_of(runner) for runner in runners})
        return True

    async def _prune(self, run: DesiredWorkload, wanted: Collection[str]) -> None:
        """Delete the Deployments of revisions that no longer exist."""
        written = self.written.find_uids(run.workload_id, DEPLOYMENT)
        existing = await self._list_deployments(run) if written is None else written
        for path, uid in existing.items():
            if path not in wanted:
                await self.delete(path, uid)
                self.written.note_deleted(run.workload_id, path)

    async def _list_deployments(self, run: DesiredWorkload) -> dict[str, str]:
        """The uids of its Deployments by path."""
        listed = await self._api.get(DEPLOYMENT.path(run.namespace), labelSelector=f"{ID_LABEL}={run.workload_id}")
        metadata = (item.metadata for item in msgspec.json.decode(listed, type=ListedObjects).items)
        return {DEPLOYMENT.path(run.namespace, one.name): one.uid for one in metadata}

    def _check_installed(self, rendered: RenderedObjects) -> None:
        kinds = {resource_of(claim) for claim in rendered.claims}
        if RESOURCE_CLAIM_TEMPLATE in kinds and not self.kinds.has_device_claims:
            what = f"{RESOURCE_CLAIM_TEMPLATE.kind} ({RESOURCE_CLAIM_TEMPLATE.api}, Kubernetes 1.34)"
            raise Refused(f"The cluster has no {what}; remove the annotation {CLASS_ANNOTATION} from the workload")
        installed = {(runner.api, runner.kind) for runner in self.kinds.runners}
        for runner in () if rendered.members else rendered.runners:
            if (runner["apiVersion"], runner["kind"]) not in installed:
                what = f"{runner['kind']} ({runner['apiVersion']})"
                raise Refused(f"The cluster has no {what}; install its controller and submit the workload again")

    async def _apply_ours(self, manifest: Manifest, run: DesiredWorkload) -> StoredObject:
        """Apply an object of a workload, unless an object of that name belongs to somebody else."""
        self.written.note_sent(run.workload_id, manifest)
        stored = await self._apply_if(manifest, {"resourceVersion": _NEVER})
        if stored is None and (known := await self._find(path_of(manifest))):
            self._check_same_run(known, manifest, run)
            stored = await self._apply_if(manifest, {"uid": known.metadata.uid})
        if stored is None:
            raise BlockedForNow(f"{manifest['kind']} {manifest['metadata']['name']} changed while it was applied")
        self.written.note_accepted(run.workload_id, manifest, stored.metadata.uid)
        return stored

    def _check_same_run(self, known: StoredObject, manifest: Manifest, run: DesiredWorkload) -> None:
        """Raises unless the object of that name in the cluster belongs to this run."""
        labels, name = known.metadata.labels, f"{manifest['kind']} {manifest['metadata']['name']}"
        if labels.get(ID_LABEL) == run.workload_id and known.metadata.deletion_timestamp is None:
            if labels.get(RUN_LABEL) == str(run.run):
                return
        elif labels.get(CLUSTER_LABEL) != self.cluster_id():
            owner = (
                "belongs to another Fairlead installation" if CLUSTER_LABEL in labels else "does not belong to Fairlead"
            )
            raise Refused(
                f"{name} exists in namespace {run.namespace} and {owner}; "
                "choose another name for the workload, or delete that object"
            )
        raise BlockedForNow(f"the previous {name} is still being deleted")

    async def _apply_if(self, manifest: Manifest, condition: dict[str, str]) -> StoredObject | None:
        """Apply with a precondition in the same request; None if the object in the cluster does not meet it."""
        try:
            return await self._apply({**manifest, "metadata": {**manifest["metadata"], **condition}}, is_exact=True)
        except ApiError as error:
            if error.status == 409:
                return None
            raise

    # Pod groups of our own, and node pools

    async def annotate_group(self, group: objects.PodGroup, annotations: dict[str, str]) -> None:
        # The uid keeps it from a group of the same name that was created meanwhile.
        change = {"metadata": {"uid": group.metadata.uid, "annotations": annotations}}
        await self._patch(POD_GROUP.path(group.metadata.namespace, group.metadata.name), change)

    async def create_members(self, run: DesiredWorkload, members: Iterable[tuple[str, int]], attempt: int) -> set[str]:
        """Create these pods of a group; returns the uids of those that did not exist."""
        selectors = self.sources.find_pool_selectors(run)
        context, _ = await self._load_context(run, LaunchChoices(pool_selectors=selectors))
        templates = {one.podset.role: one for one in render_objects(context, run.podsets, run.manifest).members}
        created = [
            await self._create_pod(render_member(context, templates[role], index, attempt)) for role, index in members
        ]
        return set(filter(None, created))

    async def _create_pod(self, pod: Manifest) -> str:
        """Its uid. A pod of that name that exists, perhaps terminating, is left alone; the next plan decides."""
        try:
            path = POD.path(pod["metadata"]["namespace"])
            answer = await self._api.request("POST", path, pod, query={"fieldManager": MANAGER})
        except ApiError as error:
            if error.status in (400, 422):
                raise Refused(f"The cluster does not accept pod {pod['metadata']['name']}: {error}") from error
            if error.status != 409:
                raise
            return ""
        return msgspec.json.decode(answer, type=StoredObject).metadata.uid

    async def move_group(self, run: DesiredWorkload, group: objects.PodGroup, pool: str, reason: str) -> None:
        path = POD_GROUP.path(run.namespace, group.metadata.name)
        await self._patch(path, render_move(run.project, pool, reason))

    async def _patch(self, path: str, change: Manifest) -> None:
        await self._api.request("PATCH", path, change, query=_MERGE_QUERY, content=MERGE)

    async def load_pods(self, run: DesiredWorkload) -> tuple[objects.Pod, ...]:
        """A workload's pods as the API server has them."""
        listed = await self._api.get(POD.path(run.namespace), labelSelector=f"{ID_LABEL}={run.workload_id}")
        return msgspec.json.decode(listed, type=_Pods).items

    # Recreation

    async def delete_for_next_attempt(
        self, run: DesiredWorkload, resource: Resource, uid: str, again: LaunchChoices
    ) -> None:
        """Delete an operator's job. Its object goes after its pods, so that their names are free then.

        The next attempt's launch choices are written down first: another server may be the one to create it.
        """
        await self._apply_ours(render_note(self.render_context(run), again), run)
        await self.delete(resource.path(run.namespace, run.name), uid, propagation="Foreground")

    async def load_launch_choices(self, run: DesiredWorkload) -> LaunchChoices:
        """The launch choices that were written down when a job of this run was last deleted."""
        note = await self._api.find(CONFIG_MAP.path(run.namespace, note_name(run.name)))
        if note is None:
            return NO_LAUNCH_CHOICES
        return read_note(msgspec.json.decode(note, type=RecreationNote), self.render_context(run).ownership_labels)

    async def delete_for_recreation(self, job: objects.Metadata) -> None:
        """Delete this Job; the workload's next order creates it again."""
        await self.delete(JOB.path(job.namespace, job.name), job.uid)

    # Questions

    async def is_accepted_by_cluster(self, run: DesiredWorkload, launch: LaunchChoices) -> bool:
        """Whether the cluster would accept the controllers of these kinds. Knative checks more than the definition of
        its Service says: which fields of pods it was configured to accept, and how long requests may take."""
        context, _ = await self._load_context(run, launch)
        for runner in render_objects(context, run.podsets, run.manifest).runners:
            query = {**APPLY_QUERY, "dryRun": "All"}
            try:
                await self._api.request("PATCH", path_of(runner), runner, query=query, content=APPLY)
            except ApiError as error:
                if error.status in (400, 422):
                    return False
                raise
        return True

    async def dry_run_pods(self, run: DesiredWorkload, launch: LaunchChoices) -> str:
        """Why the cluster never accepts the workload's pods; empty if it does, or may at another time."""
        context, _ = await self._load_context(run, launch)
        runners = render_objects(context, run.podsets, run.manifest).runners
        if is_checked({runner["kind"] for runner in runners}):
            return ""
        for template in (template for runner in runners for template in templates_of(runner)):
            metadata = {**template["metadata"], "name": run.name, "namespace": run.namespace}
            pod = {"apiVersion": POD.api, "kind": POD.kind, "metadata": metadata, "spec": template["spec"]}
            try:
                await self._api.request("POST", POD.path(run.namespace), pod, query={"dryRun": "All"})
            except ApiError as error:
                # Other refusals may be over tomorrow, or are about the dry run itself.
                if error.status == 422:
                    return f"The cluster does not accept pods of {runners[0]['kind']} {run.name}: {error}"
        return ""


def _programs(context: RenderContext, podsets: Iterable[PodSet]) -> list[Manifest]:
    """The program that our containers beside the workload's own run, if it has such containers."""
    if not has_buckets(podsets):
        return []
    folder = importlib.resources.files(PACKAGE)
    return [render_program(context, {name: folder.joinpath(name).read_text() for name in FILES})]


def _owned_by(service: Manifest, owner: Manifest, uid: str) -> Manifest:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {**service, "metadata": {**service["metadata"], "ownerReferences": [{**reference, "uid": uid}]}}
