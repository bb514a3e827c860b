"""The permissions that the engine needs in a cluster, and the policies that confine its account. Pure.

`doctor` checks that they are granted; the manifests of an installation grant them. In the whole cluster the account
reads what it watches, and writes what belongs to projects as such. Everything else it may do only in the namespaces of
its projects, where it binds itself to a role; a policy of the cluster keeps it from doing that elsewhere.
"""

from collections.abc import Iterable

import msgspec

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, PROJECT_ROLE
from fairlead.formats.crd import plural_of
from fairlead.formats.custom_resource import RUNAI_GROUP, api_version, custom_kinds
from fairlead.formats.legacy_policies import LEGACY_KINDS
from fairlead.formats.policy_crd import policy_api_version, policy_plural

#: The custom resources of workloads, as (group, plural).
_WORKLOADS = tuple((api_version(kind).partition("/")[0], plural_of(kind)) for kind in custom_kinds())
#: Policies in the older form, likewise.
_POLICIES = tuple((policy_api_version(name).partition("/")[0], policy_plural(name)) for name in LEGACY_KINDS)
_READ = ("get", "list", "watch")
_WRITE = ("create", "patch", "delete")
_MAKE = (*_READ, *_WRITE)
_RBAC = "rbac.authorization.k8s.io"
#: Controllers of pods, as (group, plural), and whether a cluster may lack them.
_CONTROLLERS = (
    ("batch", "jobs", False),
    ("apps", "deployments", False),
    ("leaderworkerset.x-k8s.io", "leaderworkersets", True),
    *(("kubeflow.org", plural, True) for plural in ("pytorchjobs", "tfjobs", "xgboostjobs", "jaxjobs", "mpijobs")),
    ("serving.knative.dev", "services", True),
    ("scheduling.run.ai", "podgroups", False),
)


class Permission(msgspec.Struct, frozen=True):
    """Verbs on one kind of object of one group (empty for Kubernetes' own)."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    #: Without it only a part of Fairlead does not work.
    is_optional: bool = False
    #: The only objects for which it is granted; empty for all.
    names: tuple[str, ...] = ()

    @property
    def rule(self) -> Manifest:
        rule: Manifest = {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(self.verbs)}
        return rule | ({"resourceNames": list(self.names)} if self.names else {})


#: Granted in the whole cluster.
CLUSTER_PERMISSIONS = (
    Permission("", "pods", _READ),
    *(Permission(group, plural, _READ, is_optional) for group, plural, is_optional in _CONTROLLERS),
    *(Permission(group, plural, _READ, is_optional=True) for group, plural in _WORKLOADS),
    # In the whole cluster, because those for all projects are in a namespace of no project.
    *(Permission(group, plural, (*_READ, "patch"), is_optional=True) for group, plural in _POLICIES),
    *(Permission(group, f"{plural}/status", ("patch",), is_optional=True) for group, plural in _POLICIES),
    # To tell why pods could not be created.
    Permission("", "events", ("list", "watch"), is_optional=True),
    # To tell whether a pod waits for KAI's binder.
    Permission("scheduling.run.ai", "bindrequests", ("get",), is_optional=True),
    # To count the GPUs of drivers of dynamic resource allocation.
    Permission("resource.k8s.io", "resourceslices", ("list", "watch"), is_optional=True),
    # To notice when they are installed.
    Permission("apiextensions.k8s.io", "customresourcedefinitions", ("list", "watch"), is_optional=True),
    # What Knative was configured to accept.
    Permission("", "configmaps", ("get",), is_optional=True, names=("config-features",)),
    # Projects, departments, node pools and priorities; a policy confines changes of namespaces to those of projects.
    Permission("", "namespaces", (*_READ, "create", "patch")),
    Permission("", "nodes", (*_READ, "patch")),
    Permission("scheduling.run.ai", "queues", _MAKE),
    Permission("kai.scheduler", "schedulingshards", ("get", "list", *_WRITE), is_optional=True),
    Permission("scheduling.k8s.io", "priorityclasses", ("get", "create", "patch")),
    # To bind itself in the namespaces of projects, and to this role only.
    Permission(_RBAC, "rolebindings", ("get", "create", "patch"), is_optional=True),
    Permission(_RBAC, "clusterroles", ("get", "bind"), is_optional=True, names=(PROJECT_ROLE,)),
)
#: Granted in the namespaces of projects.
PROJECT_PERMISSIONS = (
    Permission("", "pods", _WRITE),
    # To delete the pods of a group in one request.
    Permission("", "pods", ("deletecollection",), is_optional=True),
    Permission("", "pods/log", ("get",)),
    # A session is opened with GET or POST, depending on the protocol.
    Permission("", "pods/exec", ("get", "create")),
    Permission("", "pods/attach", ("get", "create")),
    Permission("", "pods/portforward", ("get", "create")),
    # To drain nodes.
    Permission("", "pods/eviction", ("create",), is_optional=True),
    *(
        Permission("", plural, ("get", "list", *_WRITE))
        for plural in ("services", "persistentvolumeclaims", "secrets", "configmaps")
    ),
    Permission("", "events", ("create",), is_optional=True),
    # For whole GPUs as claims of dynamic resource allocation.
    Permission("resource.k8s.io", "resourceclaimtemplates", ("get", "list", *_WRITE), is_optional=True),
    *(Permission(group, plural, _WRITE, is_optional) for group, plural, is_optional in _CONTROLLERS),
    *(Permission(group, plural, _WRITE, is_optional=True) for group, plural in _WORKLOADS),
    *(Permission(group, f"{plural}/status", ("patch",), is_optional=True) for group, plural in _WORKLOADS),
)
#: Needed in the namespaces of projects only if Ingress objects are wanted.
INGRESS_PERMISSIONS = (Permission("networking.k8s.io", "ingresses", ("get", "list", *_WRITE)),)
#: The Secret in the namespace of the installation with the keys that several servers share.
SHARED_KEYS = "fairlead-keys"
#: Granted in that namespace, which may have other Secrets. What is created has no name yet.
OWN_PERMISSIONS = (
    Permission("", "secrets", ("create",)),
    Permission("", "secrets", ("get", "patch"), names=(SHARED_KEYS,)),
)
PERMISSIONS = (*CLUSTER_PERMISSIONS, *PROJECT_PERMISSIONS)


def permissions_for(kinds: Iterable[tuple[str, str]]) -> tuple[tuple[Permission, ...], tuple[Permission, ...]]:
    """In the whole cluster and in projects, for kinds of users' own manifests, given as (group, plural)."""
    named = tuple(kinds)
    in_cluster = tuple(Permission(group, plural, _READ, is_optional=True) for group, plural in named)
    return in_cluster, tuple(Permission(group, plural, _WRITE, is_optional=True) for group, plural in named)


def in_group(permissions: Iterable[Permission], group: str) -> list[Permission]:
    """The permissions of an installation whose custom resources are in that group."""
    return [msgspec.structs.replace(one, group=group) if one.group == RUNAI_GROUP else one for one in permissions]


def render_policies(account: str) -> list[Manifest]:
    """Policies that confine this account, by its user name: whose role bindings and namespaces it may write."""
    *_, namespace, name = account.split(":")
    labelled = f"has(PLACE.metadata.labels) && '{CLUSTER_LABEL}' in PLACE.metadata.labels"
    return [
        *_policy(
            "fairlead-role-bindings",
            account,
            (_RBAC, "rolebindings"),
            [
                (labelled.replace("PLACE", "namespaceObject"), "Fairlead binds itself in namespaces of projects only"),
                (
                    f"object.roleRef.kind == 'ClusterRole' && object.roleRef.name == '{PROJECT_ROLE}'",
                    f"Fairlead binds itself to the role {PROJECT_ROLE} only",
                ),
                (
                    "object.subjects.all(one, one.kind == 'ServiceAccount' && "
                    f"one.name == '{name}' && one.namespace == '{namespace}')",
                    "Fairlead binds nobody but itself",
                ),
            ],
        ),
        *_policy(
            "fairlead-namespaces",
            account,
            ("", "namespaces"),
            [
                (
                    "request.operation == 'CREATE' ? "
                    f"({labelled.replace('PLACE', 'object')}) : ({labelled.replace('PLACE', 'oldObject')})",
                    "Fairlead changes namespaces of projects only",
                )
            ],
        ),
    ]


def _policy(name: str, account: str, kind: tuple[str, str], rules: list[tuple[str, str]]) -> list[Manifest]:
    group, plural = kind
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    api = "admissionregistration.k8s.io/v1"
    metadata = {
        "name": name,
        "labels": {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/managed-by": "fairlead"},
    }
    return [
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [{"name": "fairlead", "expression": f"request.userInfo.username == '{account}'"}],
                "validations": [{"expression": expression, "message": message} for expression, message in rules],
            },
        },
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]
