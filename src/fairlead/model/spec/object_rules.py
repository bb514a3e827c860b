"""Rules between the members of one object, which the contract states in prose: a table from each struct to its rule.

`rules.py` walks a spec and calls them. A rule yields (member, what is wrong, what the older dialect does instead); its
text names the other members that it depends on.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.spec.canonical import items
from fairlead.model.spec.claims import AccessModes, Pvc
from fairlead.model.spec.compute import Compute, ExtendedResource
from fairlead.model.spec.environment import Variable
from fairlead.model.spec.fields import Field, Struct, fields_of, is_given, sources_of, value_or
from fairlead.model.spec.network import ExposedUrl, Port, RelatedUrl
from fairlead.model.spec.placement import MatchExpression, NodeAffinityRequired, Toleration
from fairlead.model.spec.security import BasicSecurity, Security
from fairlead.model.spec.storage import S3, BasicStorage, DataStorage, EmptyDir, Git, HostPath, Nfs, Storage
from fairlead.model.syntax import Syntax, flaw_of

#: More cores than any machine has; in thousandths it still fits into 64 bits.
MAX_CORES = 1_000_000_000
#: The largest id of a user or group; the next one means "no user" to the kernel.
MAX_ID = 2**32 - 2
#: The ports that Kubernetes allows for services of type NodePort.
NODE_PORTS = range(30_000, 32_768)
#: The fields of its pod that a variable can take its value from, as Kubernetes names them.
POD_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_KEYED_POD_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_INT64_MAX = 2**63 - 1

Broken = Iterator[tuple[str, str, str]]


def _is_quantity(value: object) -> bool:
    if not is_given(value):
        return False
    try:
        parse(value)
    except BadQuantity:
        return False
    return True


def _variable(item: Variable) -> Broken:
    known = [field.rest for field in sources_of(Variable)]
    sources = [field.rest for field in sources_of(Variable) if is_given(getattr(item, field.attribute))]
    if not sources:
        yield "", f"has no source; give one of {', '.join(known)}", "the variable is empty"
    elif len(sources) > 1:
        yield "", f"has {len(sources)} sources ({', '.join(sources)}); exactly one is allowed", f"{sources[0]} is used"
    if isinstance(item.name, str) and "=" in item.name:
        yield "name", "contains '=', which the name of a variable cannot", ""
    elif isinstance(item.name, str) and not (item.name.isascii() and item.name.isprintable()):
        yield "name", "contains a character that is not printable ASCII; name the variable like DATA_DIR", ""
    path = getattr(item.pod_field_ref, "path", None)
    if isinstance(path, str) and path not in POD_FIELDS:
        yield from _keyed_pod_field(path)


def _keyed_pod_field(path: str) -> Broken:
    keyed = _KEYED_POD_FIELD.fullmatch(path)
    if keyed is None:
        fields = ", ".join((*POD_FIELDS, "metadata.labels['KEY']", "metadata.annotations['KEY']"))
        yield "podFieldRef.path", f"is '{path[:80]}', which is not a field of a pod; known are {fields}", ""
    elif flaw_of(Syntax.LABEL_KEY, keyed[2]):
        details = f"is '{path[:80]}', but no label or annotation can have that key; give one such as example.com/team"
        yield "podFieldRef.path", details, ""


def _compute(item: Compute) -> Broken:
    if is_given(item.gpu_request_type) or any(map(is_given, _gpu_shares(item))):
        yield from _gpus(item)
    for rest, value in (("cpuCoreRequest", item.cpu_core_request), ("cpuCoreLimit", item.cpu_core_limit)):
        if isinstance(value, int | float) and value > MAX_CORES:
            yield rest, f"is {value}; at most {MAX_CORES} cores can be requested", ""
    for rest, limit in (("cpuCoreLimit", item.cpu_core_limit), ("cpuMemoryLimit", item.cpu_memory_limit)):
        if limit == 0 or (isinstance(limit, str) and _is_quantity(limit) and parse(limit) == 0):
            yield rest, f"is {limit}; nothing can run with that, leave it out for no limit", ""
    yield from limit_violations(item)


def _gpu_shares(item: Compute) -> tuple[object, ...]:
    return item.gpu_portion_request, item.gpu_portion_limit, item.gpu_memory_request, item.gpu_memory_limit


def _gpus(item: Compute) -> Broken:
    portion, portion_limit, memory, memory_limit = _gpu_shares(item)
    mig = is_given(item.mig_profile)
    yield from _gpu_share(item, "portion", portion, portion_limit, mig)
    yield from _gpu_share(item, "memory", memory, memory_limit, mig)
    for rest, value in (("gpuPortionRequest", portion), ("gpuPortionLimit", portion_limit)):
        if isinstance(value, int | float) and value > 1:
            yield rest, f"is {value}; a portion of a device is at most 1", ""
    if item.gpu_request_type == "portion" and portion == 0:
        yield "gpuPortionRequest", "is 0; a portion of a device is above 0, leave gpuRequestType out for none", ""
    if item.gpu_request_type in ("portion", "memory") and item.gpu_devices_request == 0:
        details = f"is 0, but gpuRequestType is {item.gpu_request_type}; give 1, or leave gpuRequestType out"
        yield "gpuDevicesRequest", details, ""
    if item.gpu_request_type == "memory" and isinstance(item.gpu_devices_request, int) and item.gpu_devices_request > 1:
        yield "gpuDevicesRequest", "is above 1; with gpuRequestType memory only one device can be requested", ""


def _gpu_share(item: Compute, kind: str, request: object, limit: object, mig: bool) -> Broken:
    """The request and limit of one way to share a device are given if and only if that way is chosen."""
    title = f"gpu{kind.capitalize()}"
    instead = "it is ignored, migProfile is used" if mig else "it is ignored, gpuRequestType decides"
    if item.gpu_request_type == kind:
        if not is_given(request):
            yield f"{title}Request", f"is missing; it must be given when gpuRequestType is {kind}", ""
        elif mig:
            yield (
                f"{title}Request",
                "is given together with migProfile; only one way to request GPUs is allowed",
                instead,
            )
        return
    for rest, value in ((f"{title}Request", request), (f"{title}Limit", limit)):
        if is_given(value):
            yield rest, f"is given, but gpuRequestType is not {kind}", instead


def limit_violations(item: Compute) -> Broken:
    for request, limit, rest in (
        (item.cpu_core_request, item.cpu_core_limit, "cpuCore"),
        (item.gpu_portion_request, item.gpu_portion_limit, "gpuPortion"),
    ):
        if isinstance(limit, int | float) and isinstance(request, int | float) and limit < request:
            yield f"{rest}Limit", f"is {limit}, below {rest}Request, which is {request}", ""
    for wanted, most, rest in (
        (item.cpu_memory_request, item.cpu_memory_limit, "cpuMemory"),
        (item.gpu_memory_request, item.gpu_memory_limit, "gpuMemory"),
    ):
        if is_given(most) and _is_quantity(wanted) and _is_quantity(most) and parse(str(most)) < parse(str(wanted)):
            yield f"{rest}Limit", f"is {most}, below {rest}Request, which is {wanted}", ""


def _extended_resource(item: ExtendedResource) -> Broken:
    if _is_quantity(item.quantity) and parse(str(item.quantity)).denominator != 1:
        yield "quantity", f"is {item.quantity}; extended resources must be whole numbers", ""


def _pvc(item: Pvc) -> Broken:
    if item.existing_pvc is True:
        if is_given(item.claim_info):
            yield "claimInfo", "is given, but existingPvc is true; leave one of them out", ""
        if not is_given(item.claim_name):
            yield "claimName", "is missing; an existing claim must be named", ""
        if item.ephemeral is True:
            yield "ephemeral", "is true, but existingPvc is too; an existing claim is not deleted with the workload", ""
    elif not is_given(getattr(item.claim_info, "size", None)):
        yield "claimInfo.size", "is missing; a new claim must have a size (or set existingPvc)", ""


def _access_modes(item: AccessModes) -> Broken:
    modes = (value_or(item.read_write_once, True), item.read_only_many is True, item.read_write_many is True)
    if not any(modes):
        yield "", "allows nothing: readWriteOnce, readOnlyMany and readWriteMany are all false; set one of them", ""


def _empty_dir(item: EmptyDir) -> Broken:
    if is_given(item.medium) and item.medium != "Memory":
        yield "medium", f"is '{item.medium}'; give Memory, or leave it out to use the node's disk", ""


def _git(item: Git) -> Broken:
    if is_given(item.secret_ref) and not is_given(getattr(item.secret_ref, "name", None)):
        yield "secretRef.name", "is missing; it must be given", ""
    elif is_given(item.secret_ref) and is_given(item.password_secret):
        yield "passwordSecret", "is given, but secretRef is too; give only one of them", "secretRef is used"
    keys = (("secretKeyOfUser", item.secret_key_of_user), ("secretKeyOfPassword", item.secret_key_of_password))
    if not is_given(item.password_secret):
        yield from _keys_of_nothing(keys, "passwordSecret")


def _s3(item: S3) -> Broken:
    keys = (
        ("secretKeyOfAccessKeyId", item.secret_key_of_access_key_id),
        ("secretKeyOfSecretKey", item.secret_key_of_secret_key),
    )
    if not is_given(item.access_key_secret):
        yield from _keys_of_nothing(keys, "accessKeySecret")


def _keys_of_nothing(keys: Iterable[tuple[str, object]], secret: str) -> Broken:
    """Keys of a secret that is not named: what should be private would be fetched without signing in."""
    for rest, key in keys:
        if is_given(key):
            yield rest, f"is given, but {secret} is not; name the secret, or leave the key out", "it has no effect"


def _outside_path(item: HostPath | Nfs) -> Broken:
    if isinstance(item.path, str) and ".." in item.path.split("/"):
        yield "path", f"is '{item.path[:80]}'; a path on the node or server must not contain '..'", ""


def _new_claims(item: BasicStorage) -> Broken:
    """New claims of one name, of which only the first would be created."""
    known: dict[object, int] = {}
    for number, claim in enumerate(item.pvc or ()):
        is_new = claim is not None and claim.exclude is not True and claim.existing_pvc is not True
        if claim is None or not is_new or not is_given(claim.claim_name):
            continue
        first = known.setdefault(claim.claim_name, number)
        if first != number:
            details = f"is '{claim.claim_name}', which pvc[{first}] creates already; name it differently"
            yield f"pvc[{number}].claimName", details, ""


def _mounts(item: BasicStorage) -> Broken:
    """Volumes that are mounted at the same path, and claims that are created twice."""
    yield from _new_claims(item)
    mounted: dict[str, str] = {}
    for volume, member, path in mount_paths(item):
        other = mounted.setdefault(clean_path(path), volume)
        if other != volume:
            yield f"{volume}.{member}", f"is '{path[:80]}', where {other} is mounted already; choose another", ""


def mount_paths(item: BasicStorage) -> Iterator[tuple[str, str, str]]:
    """Every volume that counts, the member that says where it is mounted, and the path."""
    for field in fields_of(type(item)):
        mount = _mount_field(field.struct)
        for number, volume in enumerate(getattr(item, field.attribute) or ()):
            path = getattr(volume, mount.attribute, None)
            if isinstance(path, str) and path.startswith("/") and volume.exclude is not True:
                yield f"{field.rest}[{number}]", mount.rest, path


def clean_path(path: str) -> str:
    """A path in one spelling."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


@cache
def _mount_field(volume: Struct | None) -> Field:
    """The member of a volume that says where it is mounted."""
    return next(field for field in fields_of(volume) if field.about.syntax is Syntax.MOUNT_PATH)


def _storage(item: DataStorage) -> Broken:
    yield from _mounts(item)
    paths = [path for path in item.host_path or () if path is not None and path.exclude is not True]
    kinds = {path.mount_propagation if is_given(path.mount_propagation) else "None" for path in paths}
    if len(kinds) > 1:
        yield "hostPath", "has items with different mountPropagation; it must be the same for all of them", ""


def _security(item: BasicSecurity) -> Broken:
    if item.seccomp_profile_type == "Localhost":
        yield "seccompProfileType", "is Localhost, which is not supported; use RuntimeDefault or Unconfined", ""
    for rest, value in (("runAsUid", item.run_as_uid), ("runAsGid", item.run_as_gid)):
        if isinstance(value, int) and not 0 <= value <= MAX_ID:
            yield rest, f"is {value}; an id must be between 0 and {MAX_ID}", ""
    groups = item.supplemental_groups
    if isinstance(groups, str) and groups and not all(map(_is_id, groups.split(","))):
        yield "supplementalGroups", f"is '{groups[:80]}'; give group ids separated by commas, such as 2,3,5", ""
    if item.uid_gid_source == "custom" and not (is_given(item.run_as_uid) or is_given(item.run_as_gid) or groups):
        yield (
            "runAsUid",
            "is missing; uidGidSource is custom, so give runAsUid, runAsGid or both",
            "the image's is used",
        )

    if item.run_as_non_root is True and item.uid_gid_source == "custom" and item.run_as_uid == 0:
        yield "runAsUid", "is 0, which is root, but runAsNonRoot is true; give another id, or leave one of them out", ""


def _is_id(word: str) -> bool:
    word = word.strip()
    return word.isascii() and word.isdigit() and int(word) <= MAX_ID


def _exposed_url(item: ExposedUrl) -> Broken:
    if not is_given(item.authorization_type) and item.authorized_users and item.authorized_groups:
        details = "has authorizedUsers and authorizedGroups; give only one of them, or an authorizationType"
        yield "", details, "authorizedUsers is used, authorizedGroups is ignored"
    lists = {"authorizedUsers": item.authorized_users, "authorizedGroups": item.authorized_groups}
    if item.authorization_type in lists and not lists[item.authorization_type]:
        details = f"names nobody, but authorizationType is {item.authorization_type}; list who may open the URL"
        yield item.authorization_type, details, ""
    for member, names in lists.items():
        if isinstance(names, tuple) and any(name is not None and not name.strip() for name in names):
            yield member, "has an empty name; leave it out, or give a name", "the empty name admits nobody"
    yield from _port_number("container", item.container)


def _related_url(item: RelatedUrl) -> Broken:
    if item.type == "":
        yield "type", "is empty; name the service at the URL, such as wandb", "the service has no name"


def _port(item: Port) -> Broken:
    yield from _port_number("external", item.external)
    is_port = isinstance(item.external, int) and 1 <= item.external <= 65535
    if item.service_type == "NodePort" and is_port and item.external not in NODE_PORTS:
        yield "external", f"is {item.external}; a NodePort must be between {NODE_PORTS[0]} and {NODE_PORTS[-1]}", ""


def _port_number(rest: str, value: object) -> Broken:
    if isinstance(value, int) and not 1 <= value <= 65535:
        yield rest, f"is {value}; a port must be between 1 and 65535", ""


def _toleration(item: Toleration) -> Broken:
    if is_given(item.seconds) and item.effect != "NoExecute":
        yield "seconds", "is given, but only the effect NoExecute takes seconds", "it has no effect"
    elif isinstance(item.seconds, int) and item.seconds > _INT64_MAX:
        yield "seconds", f"is {item.seconds}; it must be at most {_INT64_MAX}, or leave it out for ever", ""
    if item.operator == "Exists" and is_given(item.value) and item.value != "":
        yield "value", "is given, but the operator Exists takes none", ""
    if item.operator == "Equal" and not is_given(item.value):
        yield "value", "is missing; the operator Equal needs it", ""


def _node_affinity(item: NodeAffinityRequired) -> Broken:
    """A null or empty term matches no node, which is wrong only if there is no other."""
    terms = item.node_selector_terms
    if not isinstance(terms, tuple) or any(items(term.match_expressions) for term in items(terms)):
        return
    if not items(terms):
        yield "nodeSelectorTerms", "is empty, so no node could match; give a term or leave nodeAffinityRequired out", ""
    for number, term in enumerate(terms):
        if term is not None:
            path = f"nodeSelectorTerms[{number}].matchExpressions"
            yield path, "is empty, and an empty term matches no node; give at least one expression", ""


def _match_expression(item: MatchExpression) -> Broken:
    values = item.values or ()
    if item.operator in ("In", "NotIn") and not values:
        yield "values", f"is empty; the operator {item.operator} needs at least one", ""
    elif item.operator in ("Exists", "DoesNotExist") and values:
        yield "values", f"is given, but the operator {item.operator} takes none", ""
    elif item.operator in ("In", "NotIn"):
        for number, value in enumerate(values):
            flaw = flaw_of(Syntax.LABEL_VALUE, value)
            if flaw:
                yield f"values[{number}]", flaw, ""
    elif item.operator in ("Gt", "Lt") and (len(values) != 1 or not _is_whole_number(values[0])):
        yield "values", f"must be one whole number of 64 bits with the operator {item.operator}", ""


def _is_whole_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 19 and abs(int(text)) < 2**63


RULES: dict[type, Callable[[Any], Broken]] = {
    Variable: _variable,
    Compute: _compute,
    ExtendedResource: _extended_resource,
    Pvc: _pvc,
    EmptyDir: _empty_dir,
    Git: _git,
    S3: _s3,
    HostPath: _outside_path,
    Nfs: _outside_path,
    AccessModes: _access_modes,
    NodeAffinityRequired: _node_affinity,
    BasicStorage: _mounts,
    DataStorage: _storage,
    Storage: _storage,
    BasicSecurity: _security,
    Security: _security,
    ExposedUrl: _exposed_url,
    RelatedUrl: _related_url,
    Port: _port,
    Toleration: _toleration,
    MatchExpression: _match_expression,
}
