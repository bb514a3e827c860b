"""The objects of Fairlead's own installation in a cluster: namespace, account, permissions, server. Pure.

Called by `fairlead kubernetes manifests` and by the generator of `deploy/kustomize`. The server gets the permissions of
`permissions.py` and no others; its pod meets the Pod Security level "restricted".
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.install.permissions import (
    CLUSTER_PERMISSIONS,
    INGRESS_PERMISSIONS,
    OWN_PERMISSIONS,
    PROJECT_PERMISSIONS,
    SHARED_KEYS,
    Permission,
    in_group,
    permissions_for,
    render_policies,
)
from fairlead.engines.kubernetes.render.labels import PROJECT_ROLE
from fairlead.formats.crd import plural_of, render_crd
from fairlead.formats.custom_resource import OWN_GROUP, RUNAI_GROUP, api_version, custom_kinds
from fairlead.formats.legacy_policies import LEGACY_KINDS
from fairlead.formats.policy_crd import policy_api_version, policy_plural, render_policy_crd

NAME = "fairlead"
#: The groups of custom resources: the usual one, and the one for a cluster with Run:ai.
GROUPS = (RUNAI_GROUP, OWN_GROUP)
#: The path at which the server checks applied workloads.
ADMISSION_PATH = "/kubernetes/admission"
PORT, PROXY_PORT = 7420, 7421
#: The usual user of images without a shell, which no machine assigns.
USER = 65532
_ACCESS = "rbac.authorization.k8s.io"
#: A folder in the volume, because the volume's root belongs to another user.
_FOLDER = "/data/fairlead"
_LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": NAME}


class Certificate(msgspec.Struct, frozen=True):
    """In PEM. The cluster's API server trusts the authority."""

    authority: str
    chain: str
    key: str


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator can choose."""

    image: str
    namespace: str = NAME
    #: Name of a Secret whose key `url` is a PostgreSQL address; empty for SQLite on a volume of its own.
    database_secret: str = ""
    #: Number of servers; more than one need that database.
    replicas: int = 1
    storage: str = "1Gi"
    #: More arguments for `fairlead serve`.
    arguments: tuple[str, ...] = ()
    has_definitions: bool = True
    #: The group of the custom resources.
    group: str = RUNAI_GROUP
    #: Kinds of objects that users submit as manifests, as (group, plural).
    workload_kinds: tuple[tuple[str, str], ...] = ()
    #: The class of Ingress objects for workloads' URLs; empty for none.
    ingress_class: str = ""
    #: With it the server uses TLS, and the cluster asks it to check every applied workload.
    certificate: Certificate | None = None


def render_manifests(wanted: Installation) -> list[Manifest]:
    """All objects, in the order in which they can be applied."""
    return [
        _render_namespace(wanted),
        *(render_definitions(wanted.group) if wanted.has_definitions else ()),
        _object("v1", "ServiceAccount", NAME, wanted.namespace),
        *render_permissions(wanted),
        *(_render_secret(wanted, wanted.certificate) if wanted.certificate else ()),
        *(() if wanted.database_secret else (_render_claim(wanted),)),
        _render_service(wanted),
        _render_deployment(wanted),
        *(render_webhooks(wanted, wanted.certificate) if wanted.certificate else ()),
    ]


def render_definitions(group: str = RUNAI_GROUP) -> list[Manifest]:
    """Of workloads, and of policies in the older form."""
    workloads = [render_crd(kind, group) for kind in custom_kinds()]
    return [*workloads, *(render_policy_crd(name, group) for name in LEGACY_KINDS)]


def render_permissions(wanted: Installation) -> list[Manifest]:
    """What the server's account may do in the cluster, in projects and in its own namespace; and where it ends."""
    for_cluster, for_projects = permissions_for(wanted.workload_kinds)
    in_projects = (*PROJECT_PERMISSIONS, *(INGRESS_PERMISSIONS if wanted.ingress_class else ()), *for_projects)
    return [
        _role("ClusterRole", NAME, in_group((*CLUSTER_PERMISSIONS, *for_cluster), wanted.group)),
        _binding("ClusterRoleBinding", ("ClusterRole", NAME), wanted.namespace),
        _role("ClusterRole", PROJECT_ROLE, in_group(in_projects, wanted.group)),
        _role("Role", NAME, OWN_PERMISSIONS, wanted.namespace),
        _binding("RoleBinding", ("Role", NAME), wanted.namespace),
        *render_policies(f"system:serviceaccount:{wanted.namespace}:{NAME}"),
    ]


def _role(kind: str, name: str, permissions: Iterable[Permission], namespace: str = "") -> Manifest:
    return _object(f"{_ACCESS}/v1", kind, name, namespace) | {"rules": [one.rule for one in permissions]}


def _binding(kind: str, role: tuple[str, str], namespace: str) -> Manifest:
    binding = _object(f"{_ACCESS}/v1", kind, NAME, namespace if kind == "RoleBinding" else "")
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    reference = {"apiGroup": _ACCESS, "kind": role[0], "name": role[1]}
    return binding | {"roleRef": reference, "subjects": [account]}


def _object(version: str, kind: str, name: str, namespace: str = "") -> Manifest:
    metadata: Manifest = {"name": name, "labels": dict(_LABELS)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _render_namespace(wanted: Installation) -> Manifest:
    namespace = _object("v1", "Namespace", wanted.namespace)
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return namespace


def _render_claim(wanted: Installation) -> Manifest:
    resources = {"requests": {"storage": wanted.storage}}
    claim = _object("v1", "PersistentVolumeClaim", NAME, wanted.namespace)
    return claim | {"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


def _render_service(wanted: Installation) -> Manifest:
    ports = [
        {"name": "api", "port": PORT, "targetPort": "api"},
        {"name": "urls", "port": PROXY_PORT, "targetPort": "urls"},
    ]
    service = _object("v1", "Service", NAME, wanted.namespace)
    return service | {"spec": {"selector": {"app.kubernetes.io/name": NAME}, "ports": ports}}


def _render_deployment(wanted: Installation) -> Manifest:
    labels = {"app.kubernetes.io/name": NAME}
    notes = {}
    if wanted.certificate:
        # The server reads a certificate only at its start.
        notes["fairlead/certificate"] = hashlib.sha256(wanted.certificate.chain.encode()).hexdigest()[:16]
    template = {"metadata": {"labels": labels, "annotations": notes}, "spec": _render_pod(wanted)}
    deployment = _object("apps/v1", "Deployment", NAME, wanted.namespace)
    # Several servers can share a database, but not a volume.
    strategy: Manifest = {"type": "Recreate"}
    if wanted.database_secret:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    spec = {"replicas": wanted.replicas, "strategy": strategy, "selector": {"matchLabels": labels}}
    return deployment | {"spec": {**spec, "template": template}}


def _render_pod(wanted: Installation) -> Manifest:
    data = {"emptyDir": {}} if wanted.database_secret else {"persistentVolumeClaim": {"claimName": NAME}}
    volumes: list[Manifest] = [{"name": "data", **data}, {"name": "scratch", "emptyDir": {}}]
    if wanted.certificate:
        volumes.append({"name": "certificate", "secret": {"secretName": f"{NAME}-tls"}})
    # Enough to drain and to finish requests; another server takes over as soon as this one has stopped.
    return {
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 45,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_render_container(wanted)],
        "volumes": volumes,
    }


def _render_container(wanted: Installation) -> Manifest:
    scratch = {"name": "scratch", "mountPath": "/tmp"}  # noqa: S108 - in a pod
    mounts: list[Manifest] = [{"name": "data", "mountPath": "/data"}, scratch]
    environment: list[Manifest] = [
        {"name": "HOME", "value": "/data"},
        # Commands in the pod find the server by it.
        {"name": "FAIRLEAD_DATA_DIR", "value": _FOLDER},
    ]
    if wanted.certificate:
        mounts.append({"name": "certificate", "mountPath": "/certificate", "readOnly": True})
    if wanted.database_secret:
        source = {"secretKeyRef": {"name": wanted.database_secret, "key": "url"}}
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        environment += [{"name": "DATABASE", "valueFrom": source}, {"name": "ADDRESS", "valueFrom": address}]
    scheme = "HTTPS" if wanted.certificate else "HTTP"
    return {
        "name": "server",
        "image": wanted.image,
        "args": list(_arguments(wanted)),
        "env": environment,
        "ports": [{"name": "api", "containerPort": PORT}, {"name": "urls", "containerPort": PROXY_PORT}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "api", "scheme": scheme}, "periodSeconds": 2},
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "api", "scheme": scheme},
            "periodSeconds": 10,
            "failureThreshold": 6,
            "initialDelaySeconds": 10,
        },
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _arguments(wanted: Installation) -> Sequence[str]:
    if wanted.certificate:
        transport = ["--tls-certificate=/certificate/tls.crt", "--tls-key=/certificate/tls.key"]
    else:
        # Inside the cluster only; the operator's ingress has its own certificate.
        transport = ["--insecure"]
    database = []
    if wanted.database_secret:
        scheme, name = ("https", f"#{NAME}.{wanted.namespace}.svc") if wanted.certificate else ("http", "")
        # Kubernetes expands the variables.
        database = ["--database=$(DATABASE)", f"--advertise={scheme}://$(ADDRESS):{PORT}{name}"]
        database.append(f"--keys-secret={wanted.namespace}/{SHARED_KEYS}")
        # Other servers go on, and the cluster needs some seconds to send them all requests.
        database.append("--drain-seconds=10")
    listening = ["--host=0.0.0.0", f"--port={PORT}", f"--proxy-port={PROXY_PORT}", f"--data-dir={_FOLDER}"]
    ingress = []
    if wanted.ingress_class:
        # The full name, because controllers may resolve names without the search domains of pods.
        server = f"{NAME}.{wanted.namespace}.svc.cluster.local"
        ingress = [f"--ingress-class={wanted.ingress_class}", f"--ingress-server={server}"]
    group = [] if wanted.group == RUNAI_GROUP else [f"--group={wanted.group}"]
    return ["serve", "--engine=kubernetes", *listening, *transport, *database, *ingress, *group, *wanted.arguments]


def _render_secret(wanted: Installation, certificate: Certificate) -> list[Manifest]:
    secret = _object("v1", "Secret", f"{NAME}-tls", wanted.namespace)
    contents = {"tls.crt": certificate.chain, "tls.key": certificate.key}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in contents.items()}
    return [secret | {"type": "kubernetes.io/tls", "data": data}]


def render_webhooks(wanted: Installation, certificate: Certificate) -> list[Manifest]:
    """One webhook records who applied a workload, the other one checks workloads and policies."""
    workloads = [(api_version(kind, wanted.group), plural_of(kind)) for kind in custom_kinds()]
    policies = [(policy_api_version(name, wanted.group), policy_plural(name)) for name in LEGACY_KINDS]
    checking = _hook(wanted, certificate, f"workloads.{wanted.group}", ADMISSION_PATH, [*workloads, *policies])
    filling = _hook(wanted, certificate, f"owners.{wanted.group}", f"{ADMISSION_PATH}/owner", workloads)
    version = "admissionregistration.k8s.io/v1"
    return [
        _object(version, "MutatingWebhookConfiguration", NAME) | {"webhooks": [filling]},
        _object(version, "ValidatingWebhookConfiguration", NAME) | {"webhooks": [checking]},
    ]


def _hook(
    wanted: Installation, certificate: Certificate, name: str, path: str, kinds: Sequence[tuple[str, str]]
) -> Manifest:
    """A webhook for these kinds, as (API version, plural)."""
    rules = []
    for api, plural in kinds:
        group, _, version = api.partition("/")
        rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"]}
        rules.append({**rule, "resources": [plural]})
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        # Without an answer the object is stored; the server checks it when it sees it.
        "failurePolicy": "Ignore",
        "timeoutSeconds": 5,
        "clientConfig": {
            "service": {"name": NAME, "namespace": wanted.namespace, "path": path, "port": PORT},
            "caBundle": base64.b64encode(certificate.authority.encode()).decode(),
        },
        "rules": rules,
    }
