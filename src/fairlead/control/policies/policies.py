"""Writing and reading policies. A scope has at most one policy of each type."""

from collections.abc import Mapping, Sequence
from copy import deepcopy

import msgspec

from fairlead.admission.assets import DATA_SOURCES, HeldAsset, credentials_of
from fairlead.admission.policies.merge import Policy
from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.policies.effective import TYPES_BY_KEY, effective_policy
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.control.references import scopes
from fairlead.formats.policies import policy_violations
from fairlead.kinds.policies import PolicyType
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound, refuse_malformed
from fairlead.model.records.assets import Asset, Scope
from fairlead.model.records.people import Caller
from fairlead.model.records.policies import PolicyRecord
from fairlead.store.collections import ASSETS, POLICIES

Tree = dict[str, object]


class PolicyInput(msgspec.Struct, frozen=True, kw_only=True):
    """A policy as it is written; in a change, None leaves a part as it is."""

    name: str
    scope: Scope
    defaults: Tree | None = None
    rules: Tree | None = None
    imposed_assets: dict[str, tuple[str, ...]] | None = None
    #: Whether members that it does not give stay.
    is_merge: bool = False
    #: Paths such as `rules.compute.gpuDevicesRequest` that a change removes.
    reset: tuple[str, ...] = ()


async def write_policy(
    context: Context,
    caller: Caller,
    type: PolicyType,
    input: PolicyInput,
    request_id: str = "",
    *,
    is_dry_run: bool = False,
) -> PolicyRecord:
    """Create or change the policy of a scope; a dry run only checks it. Raises Invalid with every violation."""
    if input.scope.type == "system":
        details = "is system, whose policy is built in; write one for the tenant, which overrides it"
        raise Invalid(issues=(ComplianceIssue("meta.scope", details),))
    scopes.check_write(context, caller, "policies:update", input.scope)
    scope = scopes.resolve_scope(context, input.scope, "meta")

    async def attempt() -> PolicyRecord:
        before = _find(context, type, scope)
        after = _written(context, caller, type, scope, input, before)
        refuse_malformed(policy_violations(type, after.defaults, after.rules))
        await _check_imposed(context, scope, after.imposed_assets)
        if is_dry_run:
            return after
        what = f"Policy {after.name} for {type.rest} was {'created' if before is None else 'changed'} by {caller.name}"
        step = RecordChange(POLICIES, after.id, after, "Created" if before is None else "Updated", what)
        verb = "create" if before is None else "update"
        await record_steps(context, AuditedRequest(caller, verb, request_id), [step], None)
        return after

    return await retry_on_conflict(attempt)


def _find(context: Context, type: PolicyType, scope: Scope) -> PolicyRecord | None:
    records = context.directory.policies.values()
    return next((one for one in records if one.type == type.key and one.scope_key == scope.scope_key), None)


def _written(
    context: Context, caller: Caller, type: PolicyType, scope: Scope, input: PolicyInput, before: PolicyRecord | None
) -> PolicyRecord:
    now = context.clock()
    # Its trees are changed below; the directory keeps the old record.
    record = deepcopy(before) or PolicyRecord(
        id=context.new_id(),
        version=0,
        name=input.name,
        scope_key=scope.scope_key,
        type=type.key,
        scope=scope,
        created_at=now,
        created_by=caller.name,
    )
    defaults, rules, imposed = input.defaults or {}, input.rules or {}, input.imposed_assets or {}
    if input.is_merge:
        defaults, rules = _merged(record.defaults, defaults), _merged(record.rules, rules)
        imposed = {**record.imposed_assets, **imposed}
        trees: Tree = {"defaults": defaults, "rules": rules, "imposedAssets": imposed}
        refuse_malformed([issue for path in input.reset for issue in _reset(trees, path)])
    return msgspec.structs.replace(
        record,
        version=record.version + 1,
        name=input.name,
        defaults=defaults,
        rules=rules,
        imposed_assets=imposed,
        updated_at=now,
        updated_by=caller.name,
    )


def _merged(before: Tree, changes: Tree) -> Tree:
    """Objects are merged member by member; everything else, lists included, is replaced; null removes."""
    after = dict(before)
    for name, value in changes.items():
        known = after.get(name)
        if value is None:
            after.pop(name, None)
        else:
            after[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return after


def _reset(trees: Tree, path: str) -> list[ComplianceIssue]:
    """Remove what a path names."""
    *parents, last = path.split(".")
    tree: object = trees
    for name in parents:
        tree = tree.get(name) if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or last not in tree:
        return [ComplianceIssue("reset", f"the policy has no {path[:200]}; paths begin with defaults. or rules.")]
    if parents:
        del tree[last]
    elif isinstance(part := trees[last], dict):
        part.clear()
    return []


async def _check_imposed(context: Context, scope: Scope, ids_by_role: Mapping[str, Sequence[str]]) -> None:
    """Imposed assets must be data sources of this scope or a wider one, and need no credential."""
    usable, issues = scopes.scope_keys_around(context, scope), []
    imposed = [(role, number, id) for role, ids in ids_by_role.items() for number, id in enumerate(ids)]
    for role, number, id in imposed:
        path = f"policy.imposedAssets{'.' * bool(role)}{role}[{number}]"
        asset: Asset | None = await context.store.get(ASSETS, id.lower())
        if asset is None or asset.kind not in DATA_SOURCES or asset.scope_key not in usable or asset.private:
            issues.append(ComplianceIssue(path, f"there is no data source with the id {id[:60]!r} in this scope"))
        elif credentials_of([HeldAsset(asset.kind, asset.name, msgspec.json.decode(bytes(asset.spec)))]):
            issues.append(ComplianceIssue(path, f"{asset.name} uses a credential, which an imposed asset must not"))
    refuse_malformed(issues)


def load_policy(context: Context, caller: Caller, type: PolicyType, scope: Scope, verb: str = "read") -> PolicyRecord:
    """The policy of that scope itself; raises NotFound if it has none."""
    if verb == "read":
        access.check(caller, "policies:read")
    else:
        scopes.check_write(context, caller, f"policies:{verb}", scope)
    resolved = scopes.resolve_scope(context, scope, "scope")
    id = resolved.id if resolved.type in ("project", "department") else ""
    what = f"policy for {type.rest} in the scope {resolved.type} {id}".rstrip()
    scopes.check_visible(context, caller, "policies:read", resolved.scope_key, what)
    record = _find(context, type, resolved)
    if record is None:
        raise NotFound(f"There is no {what}")
    return record


async def delete_policy(context: Context, caller: Caller, type: PolicyType, scope: Scope, request_id: str = "") -> None:
    record = load_policy(context, caller, type, scope, "delete")
    message = f"Policy {record.name} for {type.rest} was deleted by {caller.name}"
    step = RecordChange(POLICIES, record.id, None, "Deleted", message)
    await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)


def find_policies(
    context: Context, caller: Caller, type: PolicyType | None = None, scope: Scope | None = None
) -> list[PolicyRecord]:
    """The policies that the caller may see, by type and scope."""
    access.check(caller, "policies:read")
    seen = scopes.visible_scope_keys(context, caller, "policies:read")
    return sorted(
        (
            record
            for record in context.directory.policies.values()
            if record.type in TYPES_BY_KEY
            and (seen is None or record.scope_key in seen)
            and (type is None or record.type == type.key)
            and (scope is None or (record.scope.type == scope.type and scope.id in ("", record.scope.id)))
        ),
        key=lambda record: (record.type, record.scope_key),
    )


def load_effective(context: Context, caller: Caller, type: PolicyType, project_id: str) -> Policy:
    """What holds in a project that the caller may see."""
    project = scopes.load_project(context, caller, "policies:read", project_id)
    return effective_policy(context, type, Scope("project", project.id))
