"""Writes assets, config maps, secrets, templates and policies.

Values of secrets are never shown by a server, so credentials and secrets are created only from values that the
caller gives.
"""

from collections.abc import Mapping
from typing import Any

from fairlead.client.errors import ServerError
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.transfer.report import CREATED
from fairlead.client.transfer.scopes import Scopes
from fairlead.client.transfer.writer import Writer

_META = ("name", "description", "workloadSupportedTypes", "autoDelete", "private")
_SCOPE_ID = {"project": "projectId", "department": "departmentId", "cluster": "clusterId"}
#: Members of a template that it was made with; others are computed from them.
_TEMPLATE = ("spec", "masterSpec", "masterSpecSameAsWorker", "leader", "worker")
#: Members of a data source that name a credential.
_CREDENTIALS = ("passwordAssetId", "credentialId", "accessKeyAssetId")
_ASK = "its value is never shown; give it in a file with --secrets, or create it again"


class MissingOnTarget(Exception):
    """Something that is named does not exist on the target."""


class AssetWriter:
    """Writes assets and remembers their ids, by which data sources and templates name them."""

    def __init__(self, writer: Writer, secrets: Mapping[str, Json]) -> None:
        self._writer = writer
        #: Values of credentials and secrets that the caller gives, by name.
        self._secrets = secrets
        #: Ids of assets on the target by their ids on the source.
        self._ids: dict[str, str] = {}

    def write(self) -> None:
        there: dict[str, list[Json]] = {}
        for asset in self._writer.bundle.assets:
            path = str(asset["path"])
            if path not in there:
                there[path] = self._writer.target.request("GET", f"/api/v1/asset/{path}")["entries"]
            kind = f"{path.partition('/')[2] or path} asset"
            try:
                self._write_asset(kind, path, asset, there[path])
            except MissingOnTarget as error:
                self._writer.report.lose(kind, str(asset["meta"]["name"]), str(error))
        self._write_values("config-maps", self._writer.bundle.config_maps)
        self._write_values("secrets", self._own_secrets())
        for claim in self._writer.bundle.claims:
            reason = "data is not carried over; copy it to the target's storage"
            self._writer.report.lose("claim", str(claim["name"]), reason)
        self._write_templates()
        self._write_policies()

    def _scope(self, meta: Json, scope: str, source_id: object = None) -> tuple[str, str]:
        translated = self._writer.scopes.translate(scope, source_id or meta.get(_SCOPE_ID.get(scope, "")))
        if translated is None:
            raise MissingOnTarget(f"its {scope} is not on the target")
        return translated

    def _write_asset(self, kind: str, path: str, asset: Json, there: list[Json]) -> None:
        meta, name = asset["meta"], str(asset["meta"]["name"])
        scope = self._scope(meta, str(meta["scope"]))
        for row in there:
            if row["meta"]["name"] == name and _is_at(row["meta"], scope):
                self._ids[str(meta["id"])] = str(row["meta"]["id"])
                self._writer.leave_unchanged(kind, name)
                return
        spec = {member: value for member, value in asset["spec"].items() if value is not None and member != "keyId"}
        if path.startswith("credentials/"):
            if name not in self._secrets:
                raise MissingOnTarget(_ASK)
            spec = {**spec, **self._secrets[name]}
            spec.pop("existingSecretName", None)
        for member in _CREDENTIALS:
            if spec.get(member):
                spec[member] = self._asset_id(str(spec[member]), "its credential")
        members = {member: meta[member] for member in _META if meta.get(member) is not None}
        body = {"meta": members | {"scope": scope[0]} | _place(scope), "spec": spec}
        created = self._writer.create(kind, name, f"/api/v1/asset/{path}", body)
        if created is not None:
            self._ids[str(meta["id"])] = str(created.get("meta", created)["id"])

    def _asset_id(self, source_id: str, what: str) -> str:
        if source_id not in self._ids:
            raise MissingOnTarget(f"{what} is not on the target")
        return self._ids[source_id]

    def _own_secrets(self) -> list[Json]:
        """Secrets that are not those of a credential."""
        of_assets = {
            resource["name"]
            for asset in self._writer.bundle.assets
            for resource in (asset.get("clusterInfo") or {}).get("resources") or ()
        }
        return [row for row in self._writer.bundle.secrets if row["name"] not in of_assets]

    def _write_values(self, noun: str, rows: list[Json]) -> None:
        """Config maps with their values, and secrets with values that the caller gives."""
        kind = noun[:-1].replace("-", " ")
        for row in rows:
            name, values = str(row["name"]), row.get("data") or self._secrets.get(str(row["name"]))
            try:
                type, _, source_id = str(row["scope"]).partition("/")
                scope = self._scope(row, type, source_id)
                if self._has(noun, name, scope):
                    self._writer.leave_unchanged(kind, name)
                    continue
                if not values:
                    raise MissingOnTarget(_ASK)
                if type != "project":
                    raise MissingOnTarget("only those of a project can be created")
            except MissingOnTarget as error:
                self._writer.report.lose(kind, name, str(error))
                continue
            body = {"name": name, "projectId": scope[1], "data": values}
            more = {"description": row["description"]} if row.get("description") else {}
            self._writer.create(kind, name, f"/api/v1/{noun}", body | more)

    def _has(self, noun: str, name: str, scope: tuple[str, str]) -> bool:
        if scope[1] == Scopes.NEW:
            return False
        rows = self._writer.target.pages(f"/api/v1/{noun}", "items", {})
        return any(row["name"] == name and row["scope"] == "/".join(scope) for row in rows)

    def _write_templates(self) -> None:
        rows = list(self._writer.target.pages("/api/v1/workload-templates", "entries", {}))
        there = {(row["meta"]["name"], row["meta"]["scopeType"], str(row["meta"]["scopeId"])) for row in rows}
        kinds = {entry.title: entry.rest for entry in load_kinds().values()}
        for template in self._writer.bundle.templates:
            meta, name = template["meta"], str(template["meta"]["name"])
            try:
                scope = self._scope(meta, str(meta["scopeType"]), meta.get("scopeId"))
                if (name, *scope) in there:
                    self._writer.leave_unchanged("template", name)
                    continue
                if meta["workloadType"] not in kinds:
                    raise MissingOnTarget(f"the target has no kind {meta['workloadType']}")
                body = {member: template[member] for member in _TEMPLATE if template.get(member) is not None}
                if template.get("assets"):
                    body["assets"] = self._translate_assets(template["assets"])
            except MissingOnTarget as error:
                self._writer.report.lose("template", name, str(error))
                continue
            place = {"scopeType": scope[0], "scopeId": scope[1]}
            more = {"description": meta["description"]} if meta.get("description") else {}
            path = f"/api/v1/workload-templates/{kinds[meta['workloadType']]}"
            self._writer.create("template", name, path, {"meta": {"name": name, **more, **place}, **body})

    def _translate_assets(self, assets: object) -> Any:
        """The assets that a template names, by their ids on the target."""
        if isinstance(assets, list):
            return [self._translate_assets(one) for one in assets]
        if isinstance(assets, dict):
            return {member: self._translate_assets(value) for member, value in assets.items()}
        if isinstance(assets, str) and len(assets) == 36 and assets.count("-") == 4:
            return self._asset_id(assets, "an asset that it names")
        return assets

    def _write_policies(self) -> None:
        for policy in self._writer.bundle.policies:
            meta, rest = policy["meta"], str(policy["rest"])
            name = f"{meta['name']} ({rest}, {meta['scope']})"
            try:
                scope = self._scope(meta, str(meta["scope"]))
            except MissingOnTarget as error:
                self._writer.report.lose("policy", name, str(error))
                continue
            place = {"scope": scope[0], "name": meta["name"], **_place(scope)}
            body = {"meta": place, "policy": policy["policy"]}
            there = self._load_policy(f"/api/v2/policy/{rest}", scope)
            if there is None:
                self._writer.put("policy", name, f"/api/v2/policy/{rest}", body, CREATED)
            elif there == policy["policy"]:
                self._writer.leave_unchanged("policy", name)
            elif self._writer.updates:
                self._writer.put("policy", name, f"/api/v2/policy/{rest}", body)
            else:
                self._writer.leave_unchanged("policy", name, "differs; --update replaces it")

    def _load_policy(self, path: str, scope: tuple[str, str]) -> Json | None:
        """The target's policy in this scope; None if it has none."""
        if scope[1] == Scopes.NEW:
            return None
        try:
            answer = self._writer.target.request("GET", path, scope=scope[0], **_place(scope))
        except ServerError as error:
            if error.status != 404:
                raise
            return None
        content: Json | None = answer.get("policy")
        return content


def _is_at(meta: Json, scope: tuple[str, str]) -> bool:
    if scope[0] not in _SCOPE_ID:
        return meta["scope"] in ("tenant", "system")
    return meta["scope"] == scope[0] and str(meta.get(_SCOPE_ID[scope[0]])) == scope[1]


def _place(scope: tuple[str, str]) -> Json:
    """The member that names a scope; the contract has the ids of projects as numbers."""
    if scope[0] not in _SCOPE_ID:
        return {}
    is_number = scope[0] == "project" and scope[1].isdecimal()
    return {_SCOPE_ID[scope[0]]: int(scope[1]) if is_number else scope[1]}
