"""Assets: create, read, change and delete, for every kind in the table of `kinds.py`.

Called by the API. A credential creates a secret, and a claim data source creates a claim; both are written, changed and
deleted together with the asset. Secret values are removed from the spec before it is stored.
"""

from collections.abc import Sequence
from typing import TypeVar, cast

import msgspec

from fairlead.admission.assets import HeldAsset, credentials_of
from fairlead.control import access
from fairlead.control.assets.claims import claim_input_of, claim_issues, make_claim
from fairlead.control.assets.kinds import BY_KIND, AssetKind, credential_issues
from fairlead.control.assets.secrets import object_issues
from fairlead.control.context import Context
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.control.references import scopes
from fairlead.control.references.names import recheck_waiting_workloads
from fairlead.control.references.users import in_use, refuse_in_use
from fairlead.model.errors import ComplianceIssue, Conflict, InUse, Invalid, NotFound, refuse_malformed
from fairlead.model.records.assets import Asset, Claim, NamedRecord, Reference, Scope, Secret, project_scope_key
from fairlead.model.records.people import Caller
from fairlead.model.records.policies import PolicyRecord
from fairlead.model.spec.assets import AssetVariable, CredentialKey
from fairlead.model.spec.claims import Pvc
from fairlead.model.spec.fields import Struct, fields_of, value_or
from fairlead.store.base import Collection, Comparison, Query, Where
from fairlead.store.collections import ASSETS, CLAIMS, SECRETS

R = TypeVar("R")


class AssetInput(msgspec.Struct, frozen=True, kw_only=True):
    """The desired state of an asset. A change does not move it to another scope."""

    name: str
    description: str = ""
    scope: Scope = Scope("project")
    #: An instance of the kind's spec.
    spec: msgspec.Struct
    auto_delete: bool = False
    private: bool = False
    supported: dict[str, bool | str | None] = {}


class AssetFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of assets is limited to; empty members limit nothing."""

    kinds: tuple[str, ...]
    name: str = ""
    scope: str = ""
    project_id: str = ""
    department_id: str = ""
    ids: tuple[str, ...] = ()
    #: Kind of workload → whether the asset must or must not be meant for it.
    meant_for: dict[str, bool] = {}
    framework: str = ""


async def create_asset(
    context: Context, caller: Caller, kind: AssetKind, input: AssetInput, request_id: str = ""
) -> Asset:
    scopes.check_write(context, caller, f"{kind.resource}:create", input.scope)
    scope = scopes.resolve_scope(context, input.scope, "meta")
    await _check(context, caller, kind, input, scope)
    now = context.clock()
    asset = Asset(
        id=context.new_id(),
        version=1,
        name=input.name,
        scope_key=scope.scope_key,
        description=input.description,
        kind=kind.kind,
        scope=scope,
        spec=_without_secret_values(input.spec),
        auto_delete=input.auto_delete,
        private=input.private,
        supported=input.supported,
        created_at=now,
        created_by=caller.name,
        updated_at=now,
        updated_by=caller.name,
    )
    message = f"{kind.title} {input.name} was created by {caller.name}"
    steps = [RecordChange(ASSETS, asset.id, asset, "Created", message)]
    if kind.values is not None and not value_or(getattr(input.spec, "existing_secret_name", None), ""):
        secret = _secret(context, caller, kind, asset, kind.values(input.spec))
        steps.append(RecordChange(SECRETS, secret.id, secret, "Created", message))
    steps += await _claim_steps(context, caller, kind, asset, input.spec, message)
    try:
        await record_steps(context, AuditedRequest(caller, "create", request_id), steps, None)
    except Conflict as error:
        if not error.columns:
            raise
        raise Conflict(f"A {kind.title} named {input.name} already exists in this scope", error.columns) from None
    await recheck_waiting_workloads(context)
    return asset


async def _check(context: Context, caller: Caller, kind: AssetKind, input: AssetInput, scope: Scope) -> None:
    """Raise Invalid with every issue of the asset."""
    issues = []
    if kind.values is not None:
        issues = credential_issues(kind, input.spec)
        issues += object_issues(f"{kind.prefix}{input.name}", kind.values(input.spec), "spec")
        existing = value_or(getattr(input.spec, "existing_secret_name", None), "")
        if existing and not await _exists(context, SECRETS, scope, existing):
            issues.append(
                ComplianceIssue("spec.existingSecretName", f"there is no secret '{existing[:80]}' in this scope")
            )
    credential_names = [
        (field.rest, value_or(getattr(input.spec, field.attribute), "")) for field in kind.credential_fields
    ]
    for path, id in (*credential_names, *_credentials_of_variables(input.spec)):
        if id and not await _is_credential(context, caller, id.lower()):
            issues.append(ComplianceIssue(f"spec.{path}", f"there is no credential with the id {id}"))
    refuse_malformed(issues)


def _credentials_of_variables(spec: msgspec.Struct) -> list[tuple[str, str]]:
    """(path, id) of the credentials that the variables of an environment name."""
    given: Sequence[AssetVariable | None] | None = getattr(spec, "environment_variables", None)
    variables = value_or(given, None) or ()
    return [
        (f"environmentVariables[{number}].credential.assetId", value_or(each.credential.asset_id, ""))
        for number, each in enumerate(variables)
        if each is not None and isinstance(each.credential, CredentialKey)
    ]


async def _exists(context: Context, collection: Collection[NamedRecord], scope: Scope, name: str) -> bool:
    seen = scopes.scope_keys_of_project(context, scope.id) if scope.type == "project" else (scope.scope_key,)
    where = (Where("place", Comparison.ONE_OF, seen), Where("name", Comparison.EQUAL, name))
    return await context.store.count(Query(collection=collection, where=where)) > 0


async def _is_credential(context: Context, caller: Caller, id: str) -> bool:
    asset: Asset | None = await context.store.get(ASSETS, id)
    if asset is None or not BY_KIND[asset.kind].is_credential:
        return False
    seen = scopes.visible_scope_keys(context, caller, "credentials:read")
    return seen is None or asset.scope_key in seen


def _without_secret_values(spec: msgspec.Struct) -> msgspec.Raw:
    """The spec as it is stored and shown: as sent, without secret values."""
    return msgspec.Raw(msgspec.json.encode(_without_secrets(type(spec), msgspec.to_builtins(spec))))


def _without_secrets(struct: Struct, plain: dict[str, object]) -> dict[str, object]:
    members_without = {}
    for field in fields_of(struct):
        if field.rest not in plain or field.about.secret:
            continue
        value = plain[field.rest]
        if field.struct is not None and isinstance(value, list | tuple):
            value = [item and _without_secrets(field.struct, item) for item in value]
        elif field.struct is not None and isinstance(value, dict):
            value = _without_secrets(field.struct, value)
        members_without[field.rest] = value
    return members_without


def _secret(context: Context, caller: Caller, kind: AssetKind, asset: Asset, values: dict[str, str]) -> Secret:
    id = context.new_id()
    return Secret(
        id=id,
        version=1,
        name=f"{kind.prefix}{asset.name}",
        scope_key=asset.scope_key,
        type=kind.secret_type,
        keys=tuple(sorted(values)),
        sealed=context.vault.seal(values, id),
        asset_id=asset.id,
        created_at=asset.created_at,
        created_by=caller.name,
        updated_at=asset.created_at,
        updated_by=caller.name,
    )


async def _claim_steps(
    context: Context, caller: Caller, kind: AssetKind, asset: Asset, spec: msgspec.Struct, message: str
) -> list[RecordChange]:
    """The claim that a data source creates at once; raises Invalid if it names an existing one that is missing."""
    if kind.kind != "pvc":
        return []
    # The spec of the data source has the members of a mounted claim.
    claim_spec = cast(Pvc, spec)
    name = value_or(claim_spec.claim_name, "") or f"{asset.name}-{context.new_suffix()}"
    if value_or(claim_spec.existing_pvc, False):
        if not await _exists(context, CLAIMS, asset.scope, name):
            raise Invalid(issues=(ComplianceIssue("spec.claimName", f"there is no claim '{name[:63]}' in this scope"),))
        return []
    if value_or(claim_spec.ephemeral, False):
        return []
    project_id = asset.scope.id if asset.scope.type == "project" else ""
    input = claim_input_of(name, project_id, claim_spec)
    issues = claim_issues(input.name, input.size, input.storage_class, "spec.claimInfo.")
    refuse_malformed(issues)
    claim = msgspec.structs.replace(make_claim(context, caller, input, asset.id), scope_key=asset.scope_key)
    return [RecordChange(CLAIMS, claim.id, claim, "Created", message)]


async def load_asset(context: Context, caller: Caller, kind: AssetKind, id: str, verb: str = "read") -> Asset:
    asset: Asset | None = await context.store.get(ASSETS, id)
    if asset is None or asset.kind != kind.kind or not _is_visible(asset, caller):
        raise NotFound(f"There is no {kind.title} with the id {id[:60]!r}")
    what = f"{kind.title} with the id {id[:60]!r}"
    scopes.check_visible(context, caller, f"{kind.resource}:read", asset.scope_key, what)
    if verb != "read":
        scopes.check_write(context, caller, f"{kind.resource}:{verb}", asset.scope)
    return asset


def may_read(context: Context, caller: Caller, asset: Asset) -> bool:
    seen = scopes.visible_scope_keys(context, caller, f"{BY_KIND[asset.kind].resource}:read")
    return _is_visible(asset, caller) and (seen is None or asset.scope_key in seen)


def _is_visible(asset: Asset, caller: Caller) -> bool:
    return not asset.private or asset.created_by == caller.name


async def find_assets(context: Context, caller: Caller, chosen: AssetFilter) -> list[Asset]:
    """The assets that the caller may see, oldest first. Those of a project include what its workloads can use."""
    reading = {kind: f"{BY_KIND[kind].resource}:read" for kind in chosen.kinds}
    kinds = [kind for kind in chosen.kinds if access.can_read(caller, reading[kind], chosen.project_id)]
    if not kinds:
        access.check(caller, reading[chosen.kinds[0]], chosen.project_id)
    readable = {kind: scopes.visible_scope_keys(context, caller, reading[kind]) for kind in kinds}
    where = [Where("kind", Comparison.ONE_OF, kinds)]
    if None not in readable.values():
        places = {key for seen in readable.values() for key in seen or ()}
        where.append(Where("place", Comparison.ONE_OF, sorted(places)))
    if chosen.name:
        where.append(Where("name", Comparison.EQUAL, chosen.name))
    if chosen.project_id and not chosen.scope:
        where.append(Where("place", Comparison.ONE_OF, scopes.scope_keys_of_project(context, chosen.project_id)))
    elif chosen.project_id:
        where.append(Where("place", Comparison.EQUAL, project_scope_key(chosen.project_id)))
    elif chosen.department_id:
        where.append(Where("place", Comparison.EQUAL, f"department/{chosen.department_id}"))
    query = Query(collection=ASSETS, where=tuple(where), order=(("created_at", False),))
    assets: list[Asset] = await context.store.find(query)
    return [
        asset
        for asset in assets
        if _is_visible(asset, caller)
        and ((seen := readable[asset.kind]) is None or asset.scope_key in seen)
        and _is_chosen(asset, chosen)
    ]


def _is_chosen(asset: Asset, chosen: AssetFilter) -> bool:
    """An asset that does not mention a kind of workload is meant for it."""
    if chosen.scope not in ("", asset.scope.type) or (chosen.ids and asset.id not in chosen.ids):
        return False
    if chosen.framework and asset.supported.get("distFramework") not in (None, chosen.framework):
        return False
    return all((asset.supported.get(word) is not False) is wanted for word, wanted in chosen.meant_for.items())


async def load_secret_of(context: Context, asset: Asset) -> Secret | None:
    secret: Secret | None = await _of(context, SECRETS, asset)
    return secret


async def load_claim_of(context: Context, asset: Asset) -> Claim | None:
    claim: Claim | None = await _of(context, CLAIMS, asset)
    return claim


async def _of(context: Context, collection: Collection[R], asset: Asset) -> R | None:
    where = (Where("asset_id", Comparison.EQUAL, asset.id),)
    records = await context.store.find(Query(collection=collection, where=where, limit=1))
    return records[0] if records else None


async def update_asset(
    context: Context, caller: Caller, kind: AssetKind, id: str, input: AssetInput, request_id: str = ""
) -> Asset:
    """Change name, description and spec. Secret values that are not given stay, and so does a claim."""

    async def attempt() -> Asset:
        before = await load_asset(context, caller, kind, id, "update")
        if kind.values is None:
            await _check(context, caller, kind, input, before.scope)
        after: Asset = msgspec.structs.replace(
            before,
            version=before.version + 1,
            name=input.name,
            description=input.description,
            spec=_without_secret_values(input.spec),
            updated_at=context.clock(),
            updated_by=caller.name,
        )
        content = HeldAsset(kind.kind, after.name, msgspec.json.decode(after.spec))
        if _imposing(context, id) and credentials_of([content]):
            issue = ComplianceIssue("spec", "must not use a credential: a policy imposes it on workloads")
            raise Invalid(issues=(issue,))
        message = f"{kind.title} {before.name} was changed by {caller.name}"
        steps = [RecordChange(ASSETS, id, after, "Updated", message)]
        steps += await _secret_steps(context, caller, kind, after, input.spec, message)
        await record_steps(context, AuditedRequest(caller, "update", request_id), steps, None)
        return after

    return await retry_on_conflict(attempt)


async def _secret_steps(
    context: Context, caller: Caller, kind: AssetKind, asset: Asset, spec: msgspec.Struct, message: str
) -> list[RecordChange]:
    secret = await load_secret_of(context, asset)
    if kind.values is None or secret is None:
        return []
    values = context.vault.open(secret.sealed, secret.id) | kind.values(spec)
    name = f"{kind.prefix}{asset.name}"
    issues = object_issues(name, values, "spec")
    refuse_malformed(issues)
    if name != secret.name:
        await refuse_in_use(context, caller, Reference.SECRET, secret)
    after = msgspec.structs.replace(
        secret,
        version=secret.version + 1,
        name=name,
        keys=tuple(sorted(values)),
        sealed=context.vault.seal(values, secret.id),
        updated_at=asset.updated_at,
        updated_by=caller.name,
    )
    return [RecordChange(SECRETS, secret.id, after, "Updated", message)]


async def delete_asset(context: Context, caller: Caller, kind: AssetKind, id: str, request_id: str = "") -> None:
    """Delete it with the secret or claim that it created, unless a workload, another asset or a policy uses that."""
    asset = await load_asset(context, caller, kind, id, "delete")
    if policies := _imposing(context, id):
        seen = scopes.visible_scope_keys(context, caller, "policies:read")
        names = [policy.name for policy in policies if seen is None or policy.scope_key in seen]
        shown = f"the policy {names[0]}" if names else "a policy that you may not see"
        raise InUse(f"{asset.name} is imposed on workloads by {shown}; remove it from the policy first")
    message = f"{kind.title} {asset.name} was deleted by {caller.name}"
    steps = [RecordChange(ASSETS, id, None, "Deleted", message)]
    if kind.is_credential:
        await _refuse_named(context, caller, asset)
    secret, claim = await load_secret_of(context, asset), await load_claim_of(context, asset)
    if secret is not None:
        await refuse_in_use(context, caller, Reference.SECRET, secret)
        steps.append(RecordChange(SECRETS, secret.id, None, "Deleted", message))
    if claim is not None:
        await refuse_in_use(context, caller, Reference.CLAIM, claim)
        steps.append(RecordChange(CLAIMS, claim.id, None, "Deleted", message))
    await record_steps(context, AuditedRequest(caller, "delete", request_id), steps, None)


def _imposing(context: Context, asset_id: str) -> list[PolicyRecord]:
    """The policies that impose an asset. Without it, every workload of their scopes would be refused."""
    records = context.directory.policies.values()
    return [one for one in records if any(asset_id in map(str.lower, ids) for ids in one.imposed_assets.values())]


async def _refuse_named(context: Context, caller: Caller, credential: Asset) -> None:
    """Raise InUse for a credential that another asset names; assets that the caller may not see are counted."""
    others: list[Asset] = await context.store.find(Query(collection=ASSETS))
    users = [other for other in others if credential.id.encode() in bytes(other.spec) and other.id != credential.id]
    if users:
        names = [other.name for other in users if may_read(context, caller, other)]
        raise in_use(credential.name, names, len(users) - len(names), "asset")
