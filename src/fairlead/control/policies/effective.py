"""The effective policy of a project: those of all its scopes, merged. Kept until policies or their scopes change."""

from fairlead.admission.policies.merge import Policy, RuleSource, merge_policies, with_source
from fairlead.admission.policies.system import SYSTEM_POLICIES
from fairlead.control.context import Context
from fairlead.control.references import scopes
from fairlead.kinds.policies import POLICY_TYPES, PolicyType
from fairlead.model.records.assets import Scope
from fairlead.model.records.policies import PolicyRecord

TYPES_BY_KEY: dict[str, PolicyType] = {type.key: type for type in POLICY_TYPES.values()}


def effective_policy(context: Context, type: PolicyType, scope: Scope, own: PolicyRecord | None = None) -> Policy:
    """What holds in a scope: its own policy and those of wider scopes, the installation's own included.

    `own` takes the place of the scope's own policy, as one that is only checked.
    """
    if own is not None and context.directory.policies.get(own.id) != own:
        return _merged_policy(context, type, scope, own)
    key, revision = (scope.scope_key, type.key), context.directory.policy_revision
    known = context.effective_policies.get(key)
    if known is not None and known[0] == revision:
        return known[1]
    policy = _merged_policy(context, type, scope)
    context.effective_policies[key] = (revision, policy)
    return policy


def _merged_policy(context: Context, type: PolicyType, scope: Scope, own: PolicyRecord | None = None) -> Policy:
    records = {record.scope_key: record for record in context.directory.policies.values() if record.type == type.key}
    if own is not None:
        records[own.scope_key] = own
    around = [records[place] for place in scopes.scope_keys_around(context, scope) if place in records]
    policies = [with_source(type, policy_of(record), source_of(record.scope)) for record in around]
    return merge_policies(type, [*policies, SYSTEM_POLICIES[type.key]])


def policy_of(record: PolicyRecord) -> Policy:
    return Policy(defaults=record.defaults, rules=record.rules, imposed_assets=record.imposed_assets)


def source_of(scope: Scope) -> RuleSource:
    if scope.type == "project":
        return RuleSource(scope=scope.type, project_id=int(scope.id))
    if scope.type == "department":
        return RuleSource(scope=scope.type, department_id=scope.id)
    return RuleSource(scope=scope.type, cluster_id=scope.id if scope.type == "cluster" else None)
