"""The seam to the custom resources of workloads, on engines whose cluster has them.

Implemented by the Kubernetes engine, used by `control/custom_resources`. Reading is from memory; writing is not.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from fairlead.model.custom_resource import CustomResource, NewResource


class CustomResourceReader(Protocol):
    """The custom resources of workloads, as the cluster has them."""

    def listen(self, notify: Callable[[], None]) -> None:
        """Call `notify` from now on whenever `take_changed` has something new."""
        ...

    def take_changed(self) -> set[str]:
        """The ids of objects that changed since the last call; on the first call, of all objects."""
        ...

    def get(self, id: str) -> CustomResource | None: ...

    def has_synced(self, kind: str) -> bool:
        """Whether all objects of this kind (`Kind.resource`) are known, so that an unknown one does not exist."""
        ...

    def is_installed(self, kind: str) -> bool:
        """Whether the cluster has this kind (`Kind.resource`), so that objects of it can be created."""
        ...

    def find_other_installation(self, namespace: str) -> str:
        """The id of the other Fairlead installation to which a namespace belongs; empty if it belongs to none."""
        ...


class CustomResourceWriter(Protocol):
    """The custom resources of workloads: what is written back."""

    async def create(self, wanted: NewResource) -> bool:
        """Create it, held by our finalizer; False if another object has that name. Raises Refused."""
        ...

    async def hold(self, resource: CustomResource) -> None:
        """Add our finalizer, so that the object stays until `release`."""
        ...

    async def release(self, resource: CustomResource) -> None: ...

    async def delete(self, resource: CustomResource) -> None: ...

    async def patch_spec(self, resource: CustomResource, members: Mapping[str, object]) -> int:
        """Replace members of its spec, remove those that are None; returns its new generation, 0 if it is gone."""
        ...

    async def set_status(self, resource: CustomResource, status: Mapping[str, object]) -> None: ...

    async def add_event(self, resource: CustomResource, type: str, reason: str, message: str) -> None:
        """Add an event to it, for `kubectl describe`; one that cannot be written is dropped."""
        ...


class CustomResources(CustomResourceReader, CustomResourceWriter, Protocol):
    """Both halves, as the sync of custom resources needs them."""
