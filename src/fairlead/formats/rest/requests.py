"""REST bodies: a creation request in, a workload's object out.

Called by `api`. A valid request costs one typed decode; only a failed one is walked again to find all mistakes. It
reads only the request, never what exists.
"""

from functools import cache
from types import new_class
from typing import Annotated, Any, Generic, TypeVar, get_type_hints

import msgspec
from msgspec import UNSET, Meta

from fairlead.formats.check import SchemaViolation, find_violations, follows_from, normalize_sizes
from fairlead.formats.plain import Plain
from fairlead.formats.rest.older_dialect import is_older, to_present
from fairlead.kinds.kind import Kind, outside_spec_names, spec_violations
from fairlead.model.clock import iso
from fairlead.model.dialect import Dialect
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import INT32_MAX, FieldInfo, Given, Maybe, Uuid, build, fields_of
from fairlead.model.spec.names import name_violations
from fairlead.model.spec.rules import SubmissionLimits, Violation
from fairlead.model.submission import Submission

SpecType = TypeVar("SpecType")
Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class CreationRequest(
    msgspec.Struct, Generic[SpecType], frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The body of a creation request."""

    name: Annotated[
        Annotated[str, Meta(min_length=1)],
        FieldInfo(text="The workload's name, unique in its project; or its prefix, see useGivenNameAsPrefix."),
    ]
    use_given_name_as_prefix: Annotated[
        bool,
        FieldInfo(
            text="Appends a hyphen and random characters to the name.",
            default=False,
            origin="contract",
        ),
    ] = False
    project_id: Annotated[str, FieldInfo(text="The project's id.")]
    cluster_id: Annotated[Uuid, FieldInfo(text="The cluster's id.")]
    template_id: Annotated[Maybe[Uuid], FieldInfo(text="A template for values that the spec does not set.")] = UNSET
    spec: Annotated[Maybe[SpecType], FieldInfo(text="What to run.")] = UNSET


class ChangeRequest(
    msgspec.Struct, Generic[SpecType], frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The body of a request to change a workload."""

    spec: Annotated[Maybe[SpecType], FieldInfo(text="The members to change.")] = UNSET


class WorkloadObject(msgspec.Struct, Generic[SpecType], frozen=True, kw_only=True, rename="camel"):
    """A workload as the operations of its kind show it."""

    name: Annotated[Annotated[str, Meta(min_length=1)], FieldInfo(text="The workload's name, unique in its project.")]
    requested_name: Annotated[str, FieldInfo(text="The name as it was sent.")]
    workload_id: Annotated[Uuid, FieldInfo(text="The workload's id; it survives suspend and resume.")]
    project_id: Annotated[str, FieldInfo(text="The project's id.")]
    department_id: Annotated[Given[Annotated[str, Meta(min_length=1)]], FieldInfo(text="The department's id.")] = UNSET
    cluster_id: Annotated[Uuid, FieldInfo(text="The cluster's id.")]
    created_by: Annotated[str, FieldInfo(text="Who submitted it.")]
    created_at: Annotated[Instant, FieldInfo(text="When it was submitted.")]
    deleted_at: Annotated[Maybe[Instant], FieldInfo(text="When its deletion was requested; null if it was not.")] = (
        UNSET
    )
    desired_phase: Annotated[DesiredPhase, FieldInfo(text="The phase that was requested last.")]
    actual_phase: Annotated[Given[Phase], FieldInfo(text="The present phase.")] = UNSET
    spec: Annotated[Maybe[SpecType], FieldInfo(text="The spec as it was sent.")] = UNSET


@cache
def _around(generic: Any, kind: Kind) -> Any:
    """A request or object with the kind's spec and the members beside it."""
    plain = generic[kind.rest_spec or kind.spec]
    if not kind.outside_spec:
        return plain
    hints = get_type_hints(kind.spec, include_extras=True)
    members = {
        "__annotations__": {name: hints[name] for name in kind.outside_spec},
        **dict.fromkeys(kind.outside_spec, UNSET),
    }
    options = {"frozen": True, "kw_only": True, "rename": "camel", "forbid_unknown_fields": generic is CreationRequest}
    name = f"{kind.title}{generic.__name__}"
    return new_class(name, (plain,), options, lambda space: space.update({**members, "__doc__": generic.__doc__}))


def request_type(kind: Kind) -> type[CreationRequest[msgspec.Struct]]:
    request: type[CreationRequest[msgspec.Struct]] = _around(CreationRequest, kind)
    return request


def object_type(kind: Kind) -> type[WorkloadObject[msgspec.Struct]]:
    stored: type[WorkloadObject[msgspec.Struct]] = _around(WorkloadObject, kind)
    return stored


@cache
def _decoder(kind: Kind) -> msgspec.json.Decoder[CreationRequest[Any]]:
    return msgspec.json.Decoder(request_type(kind))


def _whole(kind: Kind, request: CreationRequest[Any]) -> Any:
    """The spec with the members that were beside it."""
    spec = request.spec
    if not kind.outside_spec:
        return kind.spec() if spec is UNSET or spec is None else spec
    members = {} if spec is UNSET or spec is None else {name: getattr(spec, name) for name in spec.__struct_fields__}
    return kind.spec(**members, **{name: getattr(request, name) for name in kind.outside_spec})


def read_submission(kind: Kind, body: bytes) -> Submission:
    """Read a creation request into a submission; raises Invalid with every mistake."""
    if b"migProfile" not in body and b"\\u0000" not in body:
        try:
            return _submission(kind, _decoder(kind).decode(body), Dialect.REST, ())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # The walk below finds this mistake again, and all others.
    plain = _plain(body)
    older = is_older(plain)
    return _walked(kind, to_present(plain) if older else plain, older)


def read_changes(kind: Kind, body: bytes) -> Plain:
    """The members of the spec to change, by REST name; raises Invalid with every mistake."""
    plain = _plain(body)
    flaws = find_violations(ChangeRequest[kind.changes], plain, "")  # type: ignore[name-defined]  # made at run time
    if flaws:
        known = tuple(f"spec.{field.rest}" for field in fields_of(kind.changes or kind.spec))
        only = f"cannot be changed; only {', '.join(known)} can"
        is_ours = {flaw.path: flaw.path in ("", "spec") or flaw.path.startswith(known) for flaw in flaws}
        raise _malformed([ComplianceIssue(flaw.path, flaw.details if is_ours[flaw.path] else only) for flaw in flaws])
    spec = plain.get("spec") or {}
    return {name: value for name, value in spec.items() if value is not None}


def _submission(
    kind: Kind, request: CreationRequest[Any], dialect: Dialect, remarks: tuple[tuple[str, str], ...]
) -> Submission:
    return Submission(
        kind=kind.key,
        name=request.name,
        use_given_name_as_prefix=request.use_given_name_as_prefix,
        project_id=request.project_id,
        cluster_id=request.cluster_id,
        template_id=request.template_id or None,
        spec=_whole(kind, request),
        dialect=dialect,
        remarks=remarks,
    )


def _plain(body: bytes) -> Plain:
    try:
        plain = msgspec.json.decode(body)
    except RecursionError:
        raise _malformed([ComplianceIssue("", "the body is nested too deeply")]) from None
    except UnicodeDecodeError:
        raise _malformed([ComplianceIssue("", "the body is not UTF-8 text")]) from None
    except msgspec.DecodeError as error:
        raise _malformed([ComplianceIssue("", f"the body is not valid JSON: {error}")]) from None
    if not isinstance(plain, dict):
        raise _malformed([ComplianceIssue("", "the body must be one JSON object")])
    return plain


def _walked(kind: Kind, plain: Plain, older: bool) -> Submission:
    """The slow way: find every schema violation and every broken rule, and what the older dialect tolerates."""
    normalize_sizes(request_type(kind), plain)
    flaws = find_violations(request_type(kind), plain, "")
    spec = _joined(kind, plain)
    built = build(kind.spec, spec)
    broken = _rules(kind, plain, built, flaws)
    issues = [ComplianceIssue(flaw.path, flaw.details) for flaw in flaws if not (older and flaw.instead)]
    issues += [ComplianceIssue(rule.path, rule.details) for rule in broken if not (older and rule.instead)]
    if issues:
        raise _malformed(issues)
    remarks = [(flaw.path, f"{flaw.details}; {flaw.instead}") for flaw in flaws]
    remarks += [(rule.path, f"{rule.details}; {rule.instead}") for rule in broken if rule.instead]
    return Submission(
        kind=kind.key,
        name=plain["name"],
        use_given_name_as_prefix=plain.get("useGivenNameAsPrefix", False),
        project_id=plain["projectId"],
        cluster_id=plain["clusterId"],
        template_id=plain.get("templateId"),
        spec=built,
        dialect=Dialect.OLDER_REST if older else Dialect.REST,
        remarks=tuple(remarks),
    )


def _rules(kind: Kind, plain: Plain, built: Any, flaws: list[SchemaViolation]) -> list[Violation]:
    """Check the rules between members, without members that are invalid themselves."""
    wrong = {flaw.path for flaw in flaws if not flaw.instead}
    violations: list[Violation] = []
    name = plain.get("name")
    if isinstance(name, str) and "name" not in wrong:
        violations += name_violations(name, plain.get("useGivenNameAsPrefix") is True)
    if any(path.startswith(("spec", *outside_spec_names(kind))) for path in wrong):
        # A member of a wrong type would break the rules: remove it, and keep the others.
        built = build(kind.spec, _joined(kind, _without(plain, wrong, "")))
    # Admission checks the limit of the installation, because it knows it.
    violations += spec_violations(kind, built, "spec", SubmissionLimits(completions=INT32_MAX))
    return [rule for rule in violations if not follows_from(rule, wrong)]


def _without(plain: object, wrong: set[str], path: str) -> Any:
    if isinstance(plain, dict):
        return {
            name: _without(value, wrong, here)
            for name, value in plain.items()
            if (here := f"{path}.{name}" if path else name) not in wrong
        }
    if isinstance(plain, list):
        return [
            None if f"{path}[{number}]" in wrong else _without(item, wrong, f"{path}[{number}]")
            for number, item in enumerate(plain)
        ]
    return plain


def _joined(kind: Kind, plain: Plain) -> Plain:
    """The spec of a plain request with the members beside it."""
    spec = plain.get("spec")
    inside = spec if isinstance(spec, dict) else {}
    return inside | {name: plain[name] for name in outside_spec_names(kind) if name in plain}


def _malformed(issues: list[ComplianceIssue]) -> Invalid:
    return Invalid(issues=issues)


def render_workload(kind: Kind, workload: Workload) -> bytes:
    """A workload's object in the API: what was sent, and its state."""
    spec, beside = _split(kind, workload.spec)
    shown = msgspec.json.encode(
        # Not of a generic alias, which costs more to call than the object itself.
        WorkloadObject(
            name=workload.name,
            requested_name=workload.requested_name,
            workload_id=workload.id,
            project_id=workload.project_id,
            department_id=workload.department_id,
            cluster_id=workload.cluster_id,
            created_by=workload.created_by,
            created_at=iso(workload.created_at),
            deleted_at=None if workload.deleted_at is None else iso(workload.deleted_at),
            desired_phase=workload.desired_phase,
            actual_phase=workload.phase,
            spec=spec,
        )
    )
    return shown if not beside else shown[:-1] + b"," + msgspec.json.encode(beside)[1:]


def _split(kind: Kind, spec: msgspec.Raw) -> tuple[msgspec.Raw, dict[str, msgspec.Raw]]:
    """A stored spec as REST has it: the members inside, and those beside it."""
    if not kind.outside_spec:
        return spec, {}
    members = msgspec.json.decode(spec, type=dict[str, msgspec.Raw])
    beside = {name: members.pop(name) for name in outside_spec_names(kind) if name in members}
    return msgspec.Raw(msgspec.json.encode(members)), beside
