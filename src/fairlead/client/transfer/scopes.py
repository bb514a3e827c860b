"""Where things belong on the target: ids of the source as ids of the target, by name."""

from fairlead.client.client import Client
from fairlead.client.json_object import Json
from fairlead.client.transfer.bundle import Bundle


class Scopes:
    """The ids of clusters, node pools, departments and projects on the target, by their ids on the source.

    In a dry run, an object that would be created has the id `new`.
    """

    NEW = "new"

    def __init__(self, target: Client, bundle: Bundle) -> None:
        self._target = target
        self.cluster: Json = target.clusters()[0]
        self._names = {
            "cluster": {str(row["uuid"]): str(row["name"]) for row in bundle.clusters},
            "department": {str(row["id"]): str(row["name"]) for row in bundle.departments},
            "project": {str(row["id"]): str(row["name"]) for row in bundle.projects},
        }
        #: Rows of the target by kind and name.
        self.there: dict[str, dict[str, Json]] = {"node pool": {str(row["name"]): row for row in target.node_pools()}}
        self.load_owners()

    def load_owners(self) -> None:
        self.there["department"] = {str(row["name"]): row for row in self._target.departments()}
        self.there["project"] = {str(row["name"]): row for row in self._target.projects()}

    @property
    def cluster_id(self) -> str:
        return str(self.cluster["uuid"])

    def id_of(self, kind: str, name: str) -> str | None:
        row = self.there[kind].get(name)
        return None if row is None else str(row["id"])

    def name_of(self, kind: str, source_id: object) -> str:
        """The name of something of the source; its id if that is unknown."""
        return self._names[kind].get(str(source_id), str(source_id))

    def translate(self, scope: str, source_id: object) -> tuple[str, str] | None:
        """A scope of the source as (type, id) on the target; None if there is no such place.

        The target has one cluster, and one tenant that is addressed without an id.
        """
        if scope in ("system", "tenant"):
            return "tenant", str(self.cluster["tenantId"])
        if scope == "cluster":
            return "cluster", self.cluster_id
        own_id = self.id_of(scope, self.name_of(scope, source_id))
        return None if own_id is None else (scope, own_id)
