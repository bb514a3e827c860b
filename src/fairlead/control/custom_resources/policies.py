"""Policies in the older form that are objects of a cluster, such as a `TrainingPolicy`: each becomes a policy here.

Called by `loop.py` for each of them, and by the admission webhook. The object of a project's namespace is the policy of
that project, one in the namespace `runai` that of the cluster. An object never overwrites what somebody else wrote: it
owns the policy of its scope only if there was none, or if nobody has changed that since.
"""

import contextlib

import msgspec

from fairlead.control.context import Context
from fairlead.control.custom_resources.reader import CALLER, project_of_namespace
from fairlead.control.custom_resources.status import ConditionValue, Status, refusal_message, with_times
from fairlead.control.policies.effective import TYPES_BY_KEY
from fairlead.control.policies.policies import PolicyInput, delete_policy, write_policy
from fairlead.formats.legacy_policies import LEGACY_KINDS, LegacyPolicy, read_legacy_policy
from fairlead.formats.yaml.keywords import GLOBAL_NAMESPACE
from fairlead.kinds.policies import POLICY_TYPE_OF_KIND
from fairlead.model.custom_resource import CustomResource
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound
from fairlead.model.records.assets import Scope
from fairlead.model.records.policies import PolicyRecord
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import POLICIES

APPLIED, FAILED = "Applied", "Failed"
_STAYS = "The policy as it was applied before stays in force."


def is_policy(resource: CustomResource) -> bool:
    return resource.kind in LEGACY_KINDS


async def sync_policy(context: Context, resource: CustomResource) -> Status:
    """Bring the policy of its scope in line with an object; returns the status of the object."""
    try:
        policy, scope = _read(context, resource)
        known = await _find(context, policy, scope)
        if known is None and _was_applied(resource):
            raise _refused("was deleted by somebody else; change this object to apply it again")
        if known is not None and not _owns(resource, known) and not _agrees(known, policy):
            raise _conflict(known, scope)
        if known is None or not _agrees(known, policy):
            known = await write_policy(context, CALLER, policy.type, _input(policy, scope))
    except Invalid as error:
        message = refusal_message(error)
        is_in_force = await _find_owned(context, resource) is not None
        return _render_refusal(context, resource, f"{message}. {_STAYS}" if is_in_force else message)
    return _render_applied(context, resource, policy, known)


async def check_policy(context: Context, resource: CustomResource, *, is_new: bool) -> tuple[str, ...]:
    """What would be lost; raises Invalid if the object would be refused."""
    policy, scope = _read(context, resource)
    known = await _find(context, policy, scope) if is_new else None
    if known is not None and not _agrees(known, policy):
        raise _conflict(known, scope)
    await write_policy(context, CALLER, policy.type, _input(policy, scope), is_dry_run=True)
    return tuple(str(loss) for loss in policy.losses)


async def drop_policy(context: Context, resource: CustomResource) -> None:
    """Delete the policy that an object owns; its spec may not be readable any more."""
    known = await _find_owned(context, resource)
    if known is not None:
        # Its project may be gone, and the policy with it.
        with contextlib.suppress(Invalid, NotFound):
            await delete_policy(context, CALLER, TYPES_BY_KEY[known.type], known.scope)


def _read(context: Context, resource: CustomResource) -> tuple[LegacyPolicy, Scope]:
    scope = _scope(context, resource)
    return read_legacy_policy(msgspec.json.decode(resource.text)), scope


def _scope(context: Context, resource: CustomResource) -> Scope:
    if resource.namespace == GLOBAL_NAMESPACE:
        return Scope("cluster", context.directory.cluster_id)
    return Scope("project", project_of_namespace(context, resource.namespace).id)


async def _find(context: Context, policy: LegacyPolicy, scope: Scope) -> PolicyRecord | None:
    """From the store: the directory may not have what was just committed."""
    own = (
        Where("type", Comparison.EQUAL, policy.type.key),
        Where("place", Comparison.EQUAL, scope.scope_key),
    )
    return next(iter(await context.store.find(Query(collection=POLICIES, where=own))), None)


async def _find_owned(context: Context, resource: CustomResource) -> PolicyRecord | None:
    """The policy that an object wrote and nobody has changed since. Only one of its own kind and scope: others than
    servers may be allowed to write a status.
    """
    id = resource.status.get("policyId")
    known: PolicyRecord | None = await context.store.get(POLICIES, id) if isinstance(id, str) and id else None
    if known is None or not _owns(resource, known):
        return None
    is_its_kind = known.type == POLICY_TYPE_OF_KIND[LEGACY_KINDS[resource.kind].key].key
    try:
        return known if is_its_kind and _scope(context, resource).scope_key == known.scope_key else None
    except Invalid:
        return None


def _was_applied(resource: CustomResource) -> bool:
    """Whether this very spec is in force, as far as the object knows."""
    status = resource.status
    return bool(status.get("policyId")) and status.get("observedGeneration") == resource.generation


def _owns(resource: CustomResource, known: PolicyRecord) -> bool:
    status = resource.status
    return (status.get("policyId"), status.get("policyVersion")) == (known.id, known.version)


def _agrees(known: PolicyRecord, policy: LegacyPolicy) -> bool:
    """Whether it says the same: `fairlead apply` may have brought the same document."""
    given = (policy.name, policy.defaults, policy.rules)
    return given == (known.name, known.defaults, known.rules) and not any(known.imposed_assets.values())


def _input(policy: LegacyPolicy, scope: Scope) -> PolicyInput:
    return PolicyInput(name=policy.name, scope=scope, defaults=policy.defaults, rules=policy.rules)


def _conflict(known: PolicyRecord, scope: Scope) -> Invalid:
    return _refused(
        f"the scope {scope.type} has the policy {known.name} already, last written by {known.updated_by}; "
        f"delete it with `fairlead policy delete`, or this object"
    )


def _refused(details: str) -> Invalid:
    return Invalid(issues=(ComplianceIssue("spec", details),))


def _condition(type: str, status: str, reason: str, message: str) -> ConditionValue:
    return {"type": type, "status": status, "reason": reason, "message": message}


def _render_applied(context: Context, resource: CustomResource, policy: LegacyPolicy, known: PolicyRecord) -> Status:
    losses = [str(loss) for loss in policy.losses]
    conditions = [_condition("Accepted", "True", APPLIED, "")]
    if losses:
        conditions.append(_condition("ConvertedWithLosses", "True", "NotExpressible", "; ".join(losses)))
    return {
        "phase": APPLIED,
        "message": f"In force; {len(losses)} of its members changed: {losses[0]}" if losses else "",
        "scope": known.scope.type,
        "policyId": known.id,
        "policyVersion": known.version,
        "losses": losses or None,
        "observedGeneration": resource.generation,
        "conditions": with_times(resource, conditions, context.clock()),
    }


def _render_refusal(context: Context, resource: CustomResource, message: str) -> Status:
    """It keeps the id of the policy that it wrote before, which stays in force."""
    before = {name: resource.status.get(name) for name in ("policyId", "policyVersion", "scope")}
    condition = _condition("Accepted", "False", "Invalid", message)
    return {
        "phase": FAILED,
        "message": message,
        **before,
        "losses": None,
        "observedGeneration": resource.generation,
        "conditions": with_times(resource, [condition], context.clock()),
    }
