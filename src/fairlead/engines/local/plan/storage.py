"""The engine's side of storage: what volumes a pod gets, what is refused before its start, which claims go.

Made by the engine. It reads what the server keeps through `LoadSupplies` and plans with `volumes.py`; the mounting is
done in the pod's own process.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Collection

import msgspec

from fairlead.engines.local.attempts import AttemptFolders
from fairlead.engines.local.launch_order import Files
from fairlead.engines.local.linux import loop_devices
from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan.review import Note, find_refused_storage, find_weaker_storage
from fairlead.engines.local.plan.volumes import VolumeContext, Volumes, plan_volumes
from fairlead.engines.local.settings import LocalSettings
from fairlead.engines.local.storage.claims import ClaimFolders
from fairlead.model.pods.container_fields import NO_STORAGE, ContainerStorage
from fairlead.model.pods.podset import PodContainer, PodSpec
from fairlead.model.pods.supplies import LoadSupplies, Supplies

log = logging.getLogger(__name__)


class PodStorage:
    def __init__(self, settings: LocalSettings, folders: AttemptFolders, load: LoadSupplies) -> None:
        self._settings = settings
        self._folders = folders
        self._load = load
        self._claims = ClaimFolders(settings)
        self._has_images = loop_devices.are_usable()
        self._has_nfs = observe_nfs()

    def review(self, container: PodContainer) -> tuple[list[Note], list[Note]]:
        """(what is refused, what has less effect here) of a pod's storage."""
        ground = self._ground("", container)
        refused = find_refused_storage(container, ground, self._claims.classes)
        return refused, find_weaker_storage(container, ground)

    async def plan(self, pod: PodSpec) -> Volumes:
        """The volumes of one attempt; raises Refused."""
        supplies = await self.load(pod)
        ground = self._ground(self._folders.private((pod.pod_id, pod.attempt)), pod.container)
        if pod.container.fields.storage.nfs:
            # Names are looked up, which may take its time.
            volumes = await asyncio.to_thread(plan_volumes, pod, supplies, ground)
        else:
            volumes = plan_volumes(pod, supplies, ground)
        for claim in volumes.claims:
            self._claims.prepare(claim)
        return volumes

    async def load_files(self, pod: PodSpec) -> dict[str, Files]:
        """What config maps and secrets show in the pod now, by the place of each volume that follows changes."""
        ground = self._ground(self._folders.private((pod.pod_id, pod.attempt)), pod.container)
        mounted = pod.container.fields.storage
        shown = ContainerStorage(config_map_volume=mounted.config_map_volume, secret_volume=mounted.secret_volume)
        fields = msgspec.structs.replace(pod.container.fields, storage=shown)
        container = msgspec.structs.replace(pod.container, fields=fields)
        only = msgspec.structs.replace(pod, container=container)
        mounts = plan_volumes(only, await self._load(only), ground).mounts
        return {volume.at: volume.files for volume in mounts if volume.kind == "memory" and volume.files is not None}

    async def load(self, pod: PodSpec) -> Supplies:
        """Objects for the pod's volumes and its image; nothing is loaded if the pod names none."""
        fields = pod.container.fields
        names_objects = fields.storage != NO_STORAGE or fields.image_pull_secrets
        is_needed = names_objects or pod.has_caller_environment or pod.machine_user
        return await self._load(pod) if is_needed else Supplies()

    def _ground(self, private: str, container: PodContainer) -> VolumeContext:
        runtime = plan_container.choose(container, self._settings)
        mounts = plan_container.can_stage(runtime)
        return VolumeContext(
            settings=self._settings,
            private=private,
            claim_folder=self._claims.folder,
            has_images=self._has_images and mounts,
            is_plain=self._claims.is_plain,
            has_nfs=self._has_nfs,
            look_up=socket.gethostbyname,
            runtime="" if runtime == plan_container.HOST else runtime,
            mounts=mounts,
        )

    async def drop(self, claim_ids: Collection[str], workload_id: str) -> None:
        await asyncio.to_thread(self._claims.drop, claim_ids, workload_id)

    async def retain(self, claim_ids: Collection[str], workload_ids: Collection[str]) -> None:
        for folder in await asyncio.to_thread(self._claims.retain, claim_ids, workload_ids):
            log.warning("%s belongs to no known claim and is kept; remove it by hand if it is not needed", folder)


def observe_nfs() -> bool:
    """Whether exports of other machines can be mounted: by root, with a kernel that has or can load the client."""
    if os.geteuid() != 0:
        return False
    with open("/proc/filesystems") as file:
        if any(line.split()[-1] in ("nfs", "nfs4") for line in file if line.strip()):
            return True
    modules = f"/lib/modules/{os.uname().release}/modules.dep"
    try:
        with open(modules) as file:
            return any("/nfsv4.ko" in line.partition(":")[0] for line in file)
    except OSError:
        return False
