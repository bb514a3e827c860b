"""The permissions that the engine needs in a cluster. Pure.

`doctor` checks that they are granted; the manifests of an installation grant them.
"""

import msgspec

from fairlead.formats.crd import plural_of
from fairlead.formats.custom_resource import api_version, custom_kinds

#: The custom resources of workloads, as (group, plural).
_WORKLOADS = tuple((api_version(kind).partition("/")[0], plural_of(kind)) for kind in custom_kinds())
_READ = ("get", "list", "watch")
_MAKE = ("get", "list", "watch", "create", "patch", "delete")


class Permission(msgspec.Struct, frozen=True):
    """Verbs on one kind of object of one group (empty for Kubernetes' own)."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    #: Without it only a part of Fairlead does not work.
    is_optional: bool = False


#: Needed only if Ingress objects are wanted.
INGRESS_PERMISSIONS = (Permission("networking.k8s.io", "ingresses", ("get", "list", "create", "patch", "delete")),)
PERMISSIONS = (
    Permission("", "pods", _MAKE),
    Permission("", "pods/log", ("get",)),
    # A session is opened with GET or POST, depending on the protocol.
    Permission("", "pods/exec", ("get", "create")),
    Permission("", "pods/attach", ("get", "create")),
    Permission("", "pods/portforward", ("get", "create")),
    Permission("", "services", _MAKE),
    Permission("", "persistentvolumeclaims", _MAKE),
    Permission("", "secrets", ("get", "list", "create", "patch", "delete")),
    Permission("", "configmaps", ("get", "list", "create", "patch", "delete")),
    Permission("", "namespaces", (*_READ, "create", "patch")),
    # To tell why pods could not be created.
    Permission("", "events", ("list", "watch", "create"), is_optional=True),
    Permission("", "nodes", (*_READ, "patch")),
    Permission("batch", "jobs", _MAKE),
    Permission("apps", "deployments", _MAKE),
    Permission("leaderworkerset.x-k8s.io", "leaderworkersets", _MAKE, is_optional=True),
    *(
        Permission("kubeflow.org", plural, _MAKE, is_optional=True)
        for plural in ("pytorchjobs", "tfjobs", "xgboostjobs", "jaxjobs", "mpijobs")
    ),
    Permission("serving.knative.dev", "services", _MAKE, is_optional=True),
    Permission("scheduling.k8s.io", "priorityclasses", ("get", "create", "patch")),
    Permission("scheduling.run.ai", "queues", _MAKE),
    Permission("scheduling.run.ai", "podgroups", _MAKE),
    # To tell whether a pod waits for KAI's binder.
    Permission("scheduling.run.ai", "bindrequests", ("get",), is_optional=True),
    Permission("kai.scheduler", "schedulingshards", ("get", "list", "create", "patch", "delete"), is_optional=True),
    *(Permission(group, plural, _MAKE, is_optional=True) for group, plural in _WORKLOADS),
    *(Permission(group, f"{plural}/status", ("patch",), is_optional=True) for group, plural in _WORKLOADS),
    # To notice when they are installed.
    Permission("apiextensions.k8s.io", "customresourcedefinitions", ("list", "watch"), is_optional=True),
)
