"""What is written into a new cluster before anything runs in it: definitions, webhooks, priority classes, queues.

As KAI's and LeaderWorkerSet's installers would write it, only that their programs do not run in pods here. Pure but for
reading the definitions; called by `cluster.py`.
"""

import base64
from pathlib import Path
from typing import Any

import yaml

from deploy.cluster.layout import DOMAIN, Layout
from deploy.cluster.volumes import CLASS, PROVISIONER

Object = dict[str, Any]
KAI_SPACE, RESERVATIONS = "kai-scheduler", "kai-resource-reservation"
PRIORITIES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
QUEUES = {"default-parent-queue": "", "default-queue": "default-parent-queue"}


def load_definitions(programs: Path, *names: str) -> list[Object]:
    return [
        body
        for name in names
        for path in sorted((programs / name).glob("*.yaml"))
        for body in yaml.load_all(path.read_text(), yaml.CSafeLoader)
        if body
    ]


def render_objects(layout: Layout) -> list[Object]:
    bundle = base64.b64encode(layout.path("certificates", "ca.crt").read_bytes()).decode()
    return [
        *(render("v1", "Namespace", name) for name in (KAI_SPACE, RESERVATIONS, "lws-system")),
        render("v1", "ServiceAccount", RESERVATIONS, space=RESERVATIONS),
        *(render("scheduling.k8s.io/v1", "PriorityClass", name, value=value) for name, value in PRIORITIES.items()),
        # What KAI gives to pods with GPUs; nothing here needs NVIDIA's runtime.
        render("node.k8s.io/v1", "RuntimeClass", "nvidia", handler="runc"),
        render_storage_class(),
        *(render_queue(name, parent) for name, parent in QUEUES.items()),
        *render_kai_webhooks(bundle),
        *render_lws_webhooks(bundle),
    ]


def render(version: str, kind: str, name: str, space: str = "", **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": space} if space else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def render_storage_class() -> Object:
    made = render("storage.k8s.io/v1", "StorageClass", CLASS, provisioner=PROVISIONER)
    made["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return made


def render_queue(name: str, parent: str) -> Object:
    share = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    resources = dict.fromkeys(("gpu", "cpu", "memory"), share)
    spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    return render("scheduling.run.ai/v2", "Queue", name, spec=spec)


def render_webhook(name: str, url: str, bundle: str, operations: list[str], **fields: Any) -> Object:
    group, resource = fields.pop("of", ("", "pods"))
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": [resource]}],
        **fields,
    }


def render_kai_webhooks(bundle: str) -> list[Object]:
    here, name = "https://127.0.0.1:9443", "admission.kai-scheduler.svc"
    apart = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", KAI_SPACE]}
    selector = {"namespaceSelector": {"matchExpressions": [apart]}}
    changing = render_webhook(
        name, f"{here}/mutate--v1-pod", bundle, ["CREATE"], reinvocationPolicy="IfNeeded", **selector
    )
    checking = render_webhook(name, f"{here}/validate--v1-pod", bundle, ["CREATE", "UPDATE"], **selector)
    return render_configurations("kai-admission", [changing], [checking])


def render_lws_webhooks(bundle: str) -> list[Object]:
    here, set_path = "https://127.0.0.1:9543", "leaderworkerset-x-k8s-io-v1-leaderworkerset"
    sets = {"of": ("leaderworkerset.x-k8s.io", "leaderworkersets")}
    labelled = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}
    both = ["CREATE", "UPDATE"]
    return render_configurations(
        "lws",
        [
            render_webhook("mleaderworkerset.kb.io", f"{here}/mutate-{set_path}", bundle, both, **sets),
            render_webhook("mpod.kb.io", f"{here}/mutate--v1-pod", bundle, both, objectSelector=labelled),
        ],
        [
            render_webhook("vleaderworkerset.kb.io", f"{here}/validate-{set_path}", bundle, both, **sets),
            render_webhook("vpod.kb.io", f"{here}/validate--v1-pod", bundle, both, objectSelector=labelled),
        ],
    )


def render_configurations(name: str, changing: list[Object], checking: list[Object]) -> list[Object]:
    version = "admissionregistration.k8s.io/v1"
    return [
        render(version, "MutatingWebhookConfiguration", name, webhooks=changing),
        render(version, "ValidatingWebhookConfiguration", name, webhooks=checking),
    ]


def render_name_service(layout: Layout) -> list[Object]:
    """CoreDNS runs beside the kubelet, not in a pod: a service whose one endpoint is written by hand."""
    ports = [{"name": name, "port": 53, "protocol": name.upper()} for name in ("udp", "tcp")]
    service = render("v1", "Service", "kube-dns", "kube-system", spec={"clusterIP": layout.dns, "ports": ports})
    endpoints = render(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "kube-dns",
        "kube-system",
        addressType="IPv4",
        endpoints=[{"addresses": [layout.address], "conditions": {"ready": True}}],
        ports=ports,
    )
    endpoints["metadata"]["labels"] = {"kubernetes.io/service-name": "kube-dns"}
    reads = {
        "": ["endpoints", "services", "pods", "namespaces"],
        "discovery.k8s.io": ["endpointslices"],
    }
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]} for group, resources in reads.items()
    ]
    access = "rbac.authorization.k8s.io"
    role = {"apiGroup": access, "kind": "ClusterRole", "name": "system:coredns"}
    user = {"apiGroup": access, "kind": "User", "name": "system:coredns"}
    return [
        service,
        endpoints,
        render(f"{access}/v1", "ClusterRole", "system:coredns", rules=rules),
        render(f"{access}/v1", "ClusterRoleBinding", "system:coredns", roleRef=role, subjects=[user]),
    ]


def render_corefile(layout: Layout) -> str:
    return f""".:53 {{
    bind {layout.address}
    errors
    health :8109
    ready :8112
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {layout.kubeconfig("coredns")}
        pods insecure
        ttl 5
    }}
    cache 5
}}
"""
