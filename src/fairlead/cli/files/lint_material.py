"""Reads what `lint` checks: files of every kind that Fairlead reads, and a server with the caller's rights."""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from fairlead.admission.policies.merge import Policy
from fairlead.cli.files.policy_files import read_policies
from fairlead.cli.flags import UsageError
from fairlead.client import ClientError, ServerError
from fairlead.client.client import Client
from fairlead.client.json_object import Json
from fairlead.client.transfer.bundle import FORMAT, Bundle, load
from fairlead.client.transfer.reader import Reader
from fairlead.foresight.lint.material import (
    LintCluster,
    LintMaterial,
    LintPolicy,
    LintQueue,
    LintWorkload,
    cluster_of,
    workload_of,
)
from fairlead.formats.convert import dialects, from_yaml
from fairlead.formats.intermediate import (
    YAML,
    IntermediateWorkload,
    Unconvertible,
    find_kind,
    from_stored,
    in_project,
)
from fairlead.formats.policies import policy_violations
from fairlead.kinds.policies import POLICY_TYPES
from fairlead.scheduling import Queue, QueueShares, Share, SnapshotError, read_snapshot

_SCOPE_IDS = {"project": "projectId", "department": "departmentId"}
#: Members that only a snapshot has, and members that only a policy has.
_SNAPSHOT = {"now", "nodes", "queues", "jobs"}
_POLICY = {"defaults", "rules", "imposedAssets"}
_READS = "lint reads workloads, policies, snapshots and exports"
#: Units of memory in REST.
_UNITS = {"Mib": 1 << 20, "MB": 10**6, "GB": 10**9}


def read_file(text: str, path: str, project: str) -> LintMaterial:
    """The material of one file; `project` is that of workloads that name none. Raises UsageError."""
    content = _peek(text, path)
    try:
        if content.get("format") == FORMAT:
            return material_of(path, load(text, path))
        if len(_SNAPSHOT & set(content)) > 1:
            return LintMaterial(cluster=cluster_of(path, read_snapshot(text)))
        if "apiVersion" not in content and "scope" in content and _POLICY & set(content):
            return LintMaterial(policies=tuple(_policies(text, path)))
        workloads = [workload_of(path, _in_project(each, project)) for each in _workloads(text, path)]
    except SnapshotError as error:
        raise UsageError("\n".join((f"{path} is not a valid snapshot:", *error.problems))) from None
    except dialects.UnknownDialect:
        raise UsageError(f"{path}: The format of the text is not known; {_READS}.") from None
    except Unconvertible as error:
        raise UsageError("\n".join(error.lines)) from None
    except ClientError as error:
        raise UsageError(str(error)) from None
    return LintMaterial(workloads=tuple(workloads))


def _peek(text: str, path: str) -> Json:
    """The first document, if it is an object; other texts, such as scripts, are left to the readers of formats."""
    try:
        content = msgspec.json.decode(text) if text.lstrip()[:1] == "{" else next(yaml.safe_load_all(text), None)
    except (msgspec.DecodeError, yaml.YAMLError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _workloads(text: str, path: str) -> list[IntermediateWorkload]:
    dialect = dialects.detect(text, path)
    if dialect == YAML:
        return from_yaml.read_files([(path, text)], checks_rules=False)[0]
    return dialects.read_any(text, dialect, None, path)


def _in_project(workload: IntermediateWorkload, project: str) -> IntermediateWorkload:
    return in_project(workload, project) if project and not workload.project else workload


def _policies(text: str, path: str) -> Iterator[LintPolicy]:
    types = {type.key: type for type in POLICY_TYPES.values()}
    for document in read_policies(text, path):
        type, name = types[document["type"]], str(document["name"])
        broken = policy_violations(type, document.get("defaults"), document.get("rules"))
        if broken:
            lines = (f"{issue.field.removeprefix('policy.')} {issue.details}" for issue in broken)
            raise UsageError("\n".join((f"{path}: policy {name} is not valid:", *lines)))
        yield LintPolicy(
            file=path,
            name=name,
            type=type,
            scope=document["scope"],
            owner=str(document.get(document["scope"]) or ""),
            policy=_policy(document),
        )


def _policy(content: Json) -> Policy:
    return Policy(defaults=content.get("defaults") or {}, rules=content.get("rules") or {})


def read_server(client: Client) -> tuple[LintMaterial, list[str]]:
    """What the server shows to the caller, and what it does not show."""
    bundle = Reader(client).read_organization("all")
    hidden = [str(line) for line in bundle.lines()]
    material = material_of(client.url, bundle)
    try:
        cluster = cluster_of(client.url, read_snapshot(client.snapshot()))
    except ServerError as error:
        if error.status not in (403, 404):
            raise
        hidden.append(f"the scheduler's snapshot: the server does not show it ({error.status})")
        return material, hidden
    # The jobs are those of the workloads.
    return msgspec.structs.replace(material, cluster=msgspec.structs.replace(cluster, jobs=())), hidden


def material_of(file: str, bundle: Bundle) -> LintMaterial:
    """What `export` writes, or a server answers."""
    parents = {str(project["id"]): str(project.get("parentId") or "") for project in bundle.projects}
    return LintMaterial(
        workloads=tuple(_exported_workload(file, row) for row in bundle.workloads),
        policies=tuple(_exported_policy(file, number, row, parents) for number, row in enumerate(bundle.policies)),
        cluster=LintCluster(
            file=file,
            pools={str(pool["name"]): f"node_pools[{number}]" for number, pool in enumerate(bundle.node_pools)},
            queues=tuple(_exported_queues(bundle)),
        ),
    )


def _exported_workload(file: str, row: Json) -> LintWorkload:
    request = row["request"]
    spec = {**(request.get("spec") or {}), **{name: value for name, value in request.items() if name != "spec"}}
    return workload_of(file, from_stored(find_kind(row["rest"]), str(row["name"]), str(row["projectName"]), spec, True))


def _exported_policy(file: str, number: int, row: Json, parents: dict[str, str]) -> LintPolicy:
    meta = row["meta"]
    owner = str(meta.get(_SCOPE_IDS.get(meta["scope"], "")) or "")
    return LintPolicy(
        file=file,
        path=f"policies[{number}].policy",
        name=str(meta["name"]),
        type=POLICY_TYPES[row["rest"]],
        scope=meta["scope"],
        owner=owner,
        parent=parents.get(owner, "") if meta["scope"] == "project" else "",
        policy=_policy(row["policy"]),
    )


def _exported_queues(bundle: Bundle) -> Iterator[LintQueue]:
    """One queue for every owner and pool. Without a quota in a pool, an owner can only borrow there."""
    for kind, owners in (("department", bundle.departments), ("project", bundle.projects)):
        for place, owner in enumerate(owners):
            rows = {_pool_name(row): (number, row) for number, row in enumerate(owner.get("resources") or ())}
            for pool in dict.fromkeys([*(str(each["name"]) for each in bundle.node_pools), *rows]):
                number, row = rows.get(pool, (0, {}))
                yield LintQueue(
                    queue=Queue(
                        name=f"{kind}-{owner['id']}",
                        node_pool=pool,
                        display_name=str(owner["name"]),
                        parent=f"department-{owner['parentId']}" if kind == "project" else None,
                        resources=_shares(row),
                    ),
                    path=f"{kind}s[{place}].resources[{number}]",
                    quota_member="deserved",
                )


def _pool_name(row: Json) -> str:
    return str((row.get("nodePool") or {}).get("name") or "default")


def _shares(row: Json) -> QueueShares:
    memory = row.get("memory") or {}
    return QueueShares(
        gpu=_share(row.get("gpu") or {"deserved": 0}),
        cpu=_share(row.get("cpu") or {}),
        memory=_share(memory, _UNITS.get(str(memory.get("units")), 1 << 20)),
    )


def _share(quota: Json, unit: int = 1) -> Share:
    return Share(
        quota=_amount(quota.get("deserved"), unit),
        limit=_amount(quota.get("limit"), unit),
        over_quota_weight=float(quota.get("overQuotaWeight") or 0),
    )


def _amount(value: Any, unit: int) -> float:
    """Null and -1 are unlimited."""
    return -1 if value is None or value < 0 else float(value) * unit
