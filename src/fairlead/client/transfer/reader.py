"""Reads everything that can be carried over from a server that speaks Run:ai's REST interface.

A part that the server does not have, or does not show to the caller, is reported and left out.
"""

from collections.abc import Iterable

from fairlead.client.access.urls import QueryValue, quote
from fairlead.client.client import Client
from fairlead.client.errors import ServerError
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.transfer.bundle import Bundle
from fairlead.client.transfer.report import LOST, OnStep, ignore_step

_PAGE = 100
ASSETS = (
    *(f"credentials/{kind}" for kind in ("access-key", "docker-registry", "generic-secret", "ngc-api-key", "password")),
    "compute",
    "environment",
    *(f"datasource/{kind}" for kind in ("config-map", "git", "host-path", "nfs", "pvc", "s3", "secrets")),
)
#: A type of policies that is not a kind here, and its name in paths.
_NIM = {"nimService": "nim-services"}
#: Objects of Fairlead that are only listed: path, member of the answer, member with the name, kind, reason.
_STAYING = (
    (
        "/api/v1/user-credentials",
        *("items", "name", "personal credential"),
        "its value is never shown; its owner creates it again with `fairlead credential create`",
    ),
    (
        "/api/v1/datavolumes",
        *("datavolumes", "name", "data volume"),
        "data is not carried over; copy it to the target's storage",
    ),
    (
        "/api/v1/notification-rules",
        *("rules", "target", "notification rule"),
        "its keys are never shown; add it again with `fairlead notification add`",
    ),
)
#: Phases of workloads that wait for their user; they are suspended on the target too.
SUSPENDED = ("Stopping", "Stopped")
#: Which workloads are carried over, by what the user chose: those that wait, or all that have not ended.
PHASES = {
    "none": (),
    "waiting": ("Creating", "Pending"),
    "all": (
        *("Creating", "Initializing", "Pending", "Resuming", "Running", "Updating", "Degraded", "Terminating"),
        *("Unknown", *SUSPENDED),
    ),
}


class Reader:
    def __init__(self, client: Client, on_step: OnStep = ignore_step) -> None:
        self._client = client
        self._on_step = on_step
        self._unread: list[list[str]] = []

    def read(self, workloads: str = "waiting") -> Bundle:
        """Everything that the caller can see; `workloads` says which of those."""
        self._report_staying()
        return self.read_organization(workloads)._replace(
            clusters=self._rows("clusters", "/api/v1/clusters", ""),
            users=self._rows("users", "/api/v1/users", ""),
            service_accounts=self._service_accounts(),
            roles=[row for row in self._optional("/api/v2/authorization/roles", "") if row.get("custom")],
            access_rules=self._rows("access rules", "/api/v1/authorization/access-rules", "accessRules", is_paged=True),
            assets=[
                {**row, "path": path}
                for path in ASSETS
                for row in self._rows("assets", f"/api/v1/asset/{path}", "entries")
            ],
            config_maps=self._own("config-maps"),
            secrets=self._own("secrets"),
            claims=self._own("persistent-volume-claims"),
            templates=self._rows("templates", "/api/v1/workload-templates", "entries", is_paged=True),
        )

    def read_organization(self, workloads: str = "waiting") -> Bundle:
        """Node pools, departments, projects, policies and workloads that the caller can see, and nothing else."""
        lists: dict[str, list[Json]] = {
            "node_pools": self._rows("node pools", "/api/v1/node-pools", "nodepools"),
            "departments": self._rows("departments", "/api/v1/org-unit/departments", "departments", is_paged=True),
            "projects": self._rows("projects", "/api/v1/org-unit/projects", "projects", is_paged=True),
            "policies": list(self._policies()),
            "workloads": list(self._workloads(PHASES[workloads])),
        }
        nothing: dict[str, list[Json]] = {name: [] for name in Bundle._fields if name not in ("source", "unread")}
        source = {"url": self._client.url, "version": self._client.server_version}
        return Bundle(source=source, unread=self._unread, **{**nothing, **lists})

    def _rows(self, what: str, path: str, member: str, *, is_paged: bool = False) -> list[Json]:
        """The rows of a list; `member` has them, or the answer itself is the list."""
        self._on_step(f"Reading {what}")
        try:
            if not is_paged:
                answer = self._client.request("GET", path)
                return list(answer[member] if member else answer)
            rows: list[Json] = []
            while True:
                page = self._client.request("GET", path, limit=_PAGE, offset=len(rows))[member]
                rows += page
                if len(page) < _PAGE:
                    return rows
        except ServerError as error:
            if error.status not in (403, 404, 405):
                raise
            self._unread.append([LOST, what, path, f"the source does not show them ({error.status})"])
            return []

    def _optional(self, path: str, member: str) -> list[Json]:
        """The rows of a list that other servers than Fairlead's do not have."""
        try:
            answer = self._client.request("GET", path)
        except ServerError as error:
            if error.status not in (403, 404, 405):
                raise
            return []
        return list(answer[member] if member else answer)

    def _report_staying(self) -> None:
        for path, member, name, kind, reason in _STAYING:
            self._unread += [[LOST, kind, str(row[name]), reason] for row in self._optional(path, member)]

    def _service_accounts(self) -> list[Json]:
        """Service accounts; versions before 2.23 call them applications."""
        try:
            accounts: list[Json] = self._client.request("GET", "/api/v1/service-accounts")
        except ServerError as error:
            if error.status != 404:
                raise
            return self._rows("service accounts", "/api/v1/apps", "")
        return accounts

    def _own(self, noun: str) -> list[Json]:
        """Objects that only Fairlead's interface has; of config maps also their values."""
        path = f"/api/v1/{noun}"
        try:
            rows = list(self._client.pages(path, "items", {"limit": _PAGE}))
        except ServerError as error:
            if error.status not in (403, 404):
                raise
            return []
        return [self._client.request("GET", f"{path}/{quote(str(row['id']))}") for row in rows]

    def _policies(self) -> Iterable[Json]:
        names_in_paths = {_policy_type(entry.title): entry.rest for entry in load_kinds().values()} | _NIM
        for row in self._rows("policies", "/api/v2/policy", "policies"):
            meta, rest = row["meta"], names_in_paths.get(str(row.get("type")))
            if rest is None:
                self._unread.append([LOST, "policy", str(meta["name"]), f"has the unknown type {row.get('type')}"])
                continue
            names = ("scope", "projectId", "departmentId", "clusterId")
            place: dict[str, QueryValue] = {name: meta[name] for name in names if meta.get(name) is not None}
            answer = self._client.request("GET", f"/api/v2/policy/{rest}", **place)
            if answer.get("policy"):
                yield {"rest": rest, "meta": meta, "policy": answer["policy"]}

    def _workloads(self, phases: tuple[str, ...]) -> Iterable[Json]:
        kinds = {entry.title: entry for entry in load_kinds().values()}
        if not phases:
            return
        for row in self._rows("workloads", "/api/v1/workloads", "workloads", is_paged=True):
            if row["phase"] not in phases:
                continue
            kind = kinds.get(str(row["type"]))
            if kind is None:
                self._unread.append([LOST, "workload", str(row["name"]), f"has the unknown type {row['type']}"])
                continue
            self._on_step(f"Reading workload {row['name']}")
            content = self._client.request("GET", f"/api/v1/workloads/{kind.rest}/{quote(str(row['id']))}")
            members = {name: content[name] for name in ("spec", *kind.outside_spec) if content.get(name) is not None}
            place = {"projectName": row["projectName"], "rest": kind.rest, "id": row["id"], "phase": row["phase"]}
            environment = self._client.caller_environment(str(row["id"]))
            yield {"name": row["name"], **place, "request": members, "hasCallerEnvironment": environment is not None}


def _policy_type(title: str) -> str:
    """The type of a kind's policies: its title, with a small letter first."""
    return title[0].lower() + title[1:]
