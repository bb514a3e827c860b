"""Reads Kubernetes objects that run pods as the spec of a workload. Called by the API for submitted manifests.

Nothing is dropped: a member of the pod template that a workload does not have is a violation with its path. Labels and
annotations of the object become those of the workload; other members of its metadata stay in the manifest.
"""

import re
from collections.abc import Callable
from functools import partial

import msgspec

from fairlead.formats.foreign.kubeflow_jobs import KUBEFLOW_JOBS, read_kubeflow_job
from fairlead.formats.foreign.leader_worker_sets import read_leader_worker_set
from fairlead.formats.foreign.pod_templates import (
    SPEC,
    find_outside_templates,
    find_templates,
    read_mapping,
    read_template,
    refuse_unknown,
    render_path,
)
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.tree import read_tree
from fairlead.formats.yaml.values import read_plain
from fairlead.kinds import role_members
from fairlead.kinds.inference import INFERENCE
from fairlead.kinds.kind import Kind
from fairlead.kinds.training import TRAINING
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.policies.rules import fields_by_name

#: What a Deployment has besides its template; a rollout needs none of it here.
_OF_DEPLOYMENTS = frozenset({"replicas", "selector", "template", "revisionHistoryLimit", "progressDeadlineSeconds"})

#: What an object that runs pods has. Others, such as the rules of a Role or the data of a Secret, run none.
_OF_OBJECTS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
#: What kubectl notes about its own work, such as the whole object as it was applied.
_OF_KUBECTL = "kubectl.kubernetes.io/"
_OF_TEMPLATES = ("labels", "annotations")
#: A version as in `v1beta2`: the path in which its kinds are listed ends in it.
_VERSION = re.compile(r"v[0-9][a-z0-9]{0,30}\Z")


class GroupVersionKind(msgspec.Struct, frozen=True):
    """Group, version and kind of an object."""

    group: str
    version: str
    kind: str

    @property
    def title(self) -> str:
        return f"{self.group}/{self.version} {self.kind}" if self.group else f"{self.version} {self.kind}"


class ReadManifest(msgspec.Struct, frozen=True):
    """A manifest as the spec of a workload of that kind."""

    kind: Kind
    gvk: GroupVersionKind
    #: The name in its metadata; empty if it has none.
    name: str
    namespace: str
    spec: Plain


def group_version_kind_of(manifest: Plain) -> GroupVersionKind:
    """Group, version and kind; raises Invalid if one is missing."""
    missing = [name for name in ("apiVersion", "kind") if not isinstance(manifest.get(name), str) or not manifest[name]]
    if missing:
        raise Invalid(issues=tuple(ComplianceIssue(f"manifest.{name}", "must be given as text") for name in missing))
    group, _, version = manifest["apiVersion"].rpartition("/")
    if not _VERSION.match(version) or "/" in group:
        detail = f"is '{manifest['apiVersion'][:80]}', which is not a valid version, such as apps/v1"
        raise Invalid(issues=(ComplianceIssue("manifest.apiVersion", detail),))
    return GroupVersionKind(group, version, manifest["kind"])


def read_text(text: bytes, path: str) -> Plain:
    """A manifest written as YAML or JSON; raises Invalid with every mistake."""
    documents, flaws = read_tree(text)
    issues = [ComplianceIssue(path, f"line {flaw.line}: {flaw.details}") for flaw in flaws]
    if not issues and len(documents) != 1:
        issues.append(ComplianceIssue(path, f"has {len(documents)} documents; give one"))
    content = None if issues else read_plain(documents[0])
    if not isinstance(content, dict):
        raise Invalid(issues=tuple(issues) or (ComplianceIssue(path, "must be an object"),))
    return content


def is_supported(group: str, kind: str) -> bool:
    """Whether manifests of that kind of object can be run."""
    return (group, kind) in {(each.group, each.kind) for each in _READERS}


def is_read_as_workload(manifest: Plain) -> bool:
    """Whether there is a reader for this kind of object, so that both engines can run it."""
    return group_version_kind_of(manifest) in _READERS


def read_object(manifest: Plain) -> tuple[ReadManifest, ...]:
    """An object of any other kind, once for each of its pod templates. Raises Invalid as `read_manifest` does.

    Its pods are found, placed and checked by what Fairlead puts into these templates.
    """
    gvk, metadata = group_version_kind_of(manifest), read_mapping(manifest, "metadata", "manifest")
    name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
    if metadata.get("ownerReferences") or metadata.get("finalizers"):
        raise Invalid(issues=(ComplianceIssue("manifest.metadata", "must not have ownerReferences or finalizers"),))
    refuse_unknown(manifest, _OF_OBJECTS, "manifest")
    read = []
    for path, template in find_templates({"spec": manifest.get("spec")}):
        spec = read_template({"template": template}, f"manifest.{render_path(path)}", "spec.template")
        spec.setdefault("restartPolicy", "Always")
        read.append(ReadManifest(TRAINING, gvk, name, namespace, spec))
    if not read:
        detail = f"is a {gvk.title[:120]} without a pod template (spec.containers), so its pods could not be found"
        raise Invalid(issues=(ComplianceIssue("manifest", detail),))
    if outside := [render_path(path) for path in find_outside_templates({"spec": manifest.get("spec")})]:
        detail = "describes pods outside a pod template, where no policy could check it"
        raise Invalid(issues=tuple(ComplianceIssue(f"manifest.{path}", detail) for path in outside))
    return tuple(read)


def read_manifest(manifest: Plain) -> ReadManifest:
    """Raises Invalid for another kind of object, and for members that a workload does not have."""
    gvk = group_version_kind_of(manifest)
    reader = _READERS.get(gvk)
    if reader is None:
        known = ", ".join(each.title for each in _READERS)
        detail = f"is a {gvk.title[:120]}; the supported manifests are {known}"
        raise Invalid(issues=(ComplianceIssue("manifest.kind", detail),))
    metadata = read_mapping(manifest, "metadata", "manifest")
    kind, spec = reader(_pod_template(manifest) if gvk == _POD else read_mapping(manifest, "spec", "manifest"))
    parts = [spec] if "labels" in fields_by_name(kind.spec) else []
    for part in (*parts, *(spec[member] for member in role_members() if member in spec)):
        _add_metadata(part, {} if gvk == _POD else metadata)
    return ReadManifest(kind, gvk, str(metadata.get("name") or ""), str(metadata.get("namespace") or ""), spec)


def _add_metadata(spec: Plain, metadata: Plain) -> None:
    """Give the pods the labels and annotations of their object; those of their template win."""
    for member in _OF_TEMPLATES:
        given = read_mapping(metadata, member, "manifest.metadata")
        known = {one["name"] for one in spec.get(member, ())}
        added = [
            {"name": name, "value": str(value)}
            for name, value in given.items()
            if name not in known and not name.startswith(_OF_KUBECTL)
        ]
        if added:
            spec[member] = [*spec.get(member, ()), *added]


def _pod_template(pod: Plain) -> Plain:
    """A bare pod as the spec of a Job. Its metadata is that of the template."""
    metadata = {
        name: value for name, value in read_mapping(pod, "metadata", "manifest").items() if name in _OF_TEMPLATES
    }
    annotations = read_mapping(metadata, "annotations", "manifest.metadata")
    own_annotations = {name: value for name, value in annotations.items() if not name.startswith(_OF_KUBECTL)}
    template = {"metadata": {**metadata, "annotations": own_annotations}, "spec": read_mapping(pod, "spec", "manifest")}
    return {"template": template}


def _read_pod(job: Plain) -> tuple[Kind, Plain]:
    """A bare pod is not replaced, so a failed one fails the workload."""
    read = read_template(job, SPEC, "spec.template.spec")
    read.setdefault("restartPolicy", "Always")
    if read["restartPolicy"] == "Never":
        read["backoffLimit"] = 0
    return TRAINING, read


def _read_job(spec: Plain) -> tuple[Kind, Plain]:
    return TRAINING, read_template(spec, SPEC)


def _read_deployment(spec: Plain) -> tuple[Kind, Plain]:
    """A fixed number of pods that are replaced and updated one revision after another: an inference without scaling."""
    unknown = sorted(set(spec) - _OF_DEPLOYMENTS)
    if unknown:
        issues = [
            ComplianceIssue(f"manifest.spec.{name}", "is not supported for a Deployment here") for name in unknown
        ]
        raise Invalid(issues=tuple(issues))
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 1:
        raise Invalid(issues=(ComplianceIssue("manifest.spec.replicas", "must be a whole number of at least 1"),))
    read = read_template({"template": spec.get("template")}, SPEC)
    policy = read.pop("restartPolicy", "Always")
    if policy != "Always":
        path = "manifest.spec.template.spec.restartPolicy"
        raise Invalid(issues=(ComplianceIssue(path, f"is {str(policy)[:60]}; a Deployment has Always"),))
    ports = read.pop("ports", [])
    if ports:
        read["servingPort"] = {"container": ports[0]["container"]}
        if ports[1:]:
            read["ports"] = ports[1:]
    read["autoscaling"] = {"minReplicas": replicas, "maxReplicas": replicas}
    return INFERENCE, read


_POD = GroupVersionKind("", "v1", "Pod")
_READERS: dict[GroupVersionKind, Callable[[Plain], tuple[Kind, Plain]]] = {
    _POD: _read_pod,
    GroupVersionKind("batch", "v1", "Job"): _read_job,
    GroupVersionKind("apps", "v1", "Deployment"): _read_deployment,
    GroupVersionKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"): read_leader_worker_set,
    **{
        GroupVersionKind("kubeflow.org", *version_and_kind): partial(read_kubeflow_job, job)
        for version_and_kind, job in KUBEFLOW_JOBS.items()
    },
}
