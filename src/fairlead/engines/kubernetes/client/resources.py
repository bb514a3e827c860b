"""The kinds of objects that are written and watched, and their paths in the API. Pure."""

from typing import Any

import msgspec

#: An object as it is sent to the API server, or a part of one. Kubernetes' own schema decides what is in it.
Manifest = dict[str, Any]


class Resource(msgspec.Struct, frozen=True):
    """One kind of object."""

    #: `v1`, or a group and its version.
    api: str
    kind: str
    plural: str
    is_namespaced: bool = True

    @property
    def key(self) -> str:
        """Its name among controllers: other groups may have a kind of the same name."""
        return self.kind if self in CONTROLLERS.values() else f"{self.kind}.{self.api.partition('/')[0]}"

    @property
    def base(self) -> str:
        return f"/api/{self.api}" if "/" not in self.api else f"/apis/{self.api}"

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of all objects, of those in a namespace, or of one."""
        namespaced = f"/namespaces/{namespace}" if namespace and self.is_namespaced else ""
        return f"{self.base}{namespaced}/{self.plural}" + (f"/{name}" if name else "")


def _read(line: str) -> Resource:
    api, kind, plural, *rest = line.split()
    return Resource(api, kind, plural, not rest)


POD = _read("v1 Pod pods")
SERVICE = _read("v1 Service services")
CLAIM = _read("v1 PersistentVolumeClaim persistentvolumeclaims")
SECRET = _read("v1 Secret secrets")
EVENT = _read("v1 Event events")
CONFIG_MAP = _read("v1 ConfigMap configmaps")
NAMESPACE = _read("v1 Namespace namespaces cluster")
NODE = _read("v1 Node nodes cluster")
PRIORITY_CLASS = _read("scheduling.k8s.io/v1 PriorityClass priorityclasses cluster")
ROLE_BINDING = _read("rbac.authorization.k8s.io/v1 RoleBinding rolebindings")
CLUSTER_ROLE = _read("rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster")
INGRESS = _read("networking.k8s.io/v1 Ingress ingresses")
JOB = _read("batch/v1 Job jobs")
DEPLOYMENT = _read("apps/v1 Deployment deployments")
LEADER_WORKER_SET = _read("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet leaderworkersets")
QUEUE = _read("scheduling.run.ai/v2 Queue queues cluster")
POD_GROUP = _read("scheduling.run.ai/v2alpha2 PodGroup podgroups")
PYTORCH, TENSORFLOW, XGBOOST, JAX = (
    _read(f"kubeflow.org/v1 {kind} {kind.lower()}s") for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "JAXJob")
)
MPI = _read("kubeflow.org/v2beta1 MPIJob mpijobs")
DEFINITION = _read("apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster")
SHARD = _read("kai.scheduler/v1 SchedulingShard schedulingshards cluster")
#: If the cluster has this kind, Karpenter adds nodes.
KARPENTER_POOL = _read("karpenter.sh/v1 NodePool nodepools cluster")
RESOURCE_CLAIM_TEMPLATE = _read("resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates")
RESOURCE_SLICE = _read("resource.k8s.io/v1 ResourceSlice resourceslices cluster")
DEVICE_CLASS = _read("resource.k8s.io/v1 DeviceClass deviceclasses cluster")
KNATIVE = _read("serving.knative.dev/v1 Service services")

#: Controllers of pods; first those that every cluster has.
RUNNERS = (JOB, DEPLOYMENT, LEADER_WORKER_SET, PYTORCH, TENSORFLOW, XGBOOST, JAX, MPI, KNATIVE)
ALWAYS_THERE = (JOB, DEPLOYMENT)
#: Controllers that Fairlead writes itself, by their keys.
CONTROLLERS = {resource.kind: resource for resource in (*RUNNERS, POD_GROUP)}
#: Other kinds that manifests of users have, as clusters serve them, by their keys.
_DISCOVERED: dict[str, Resource] = {}
_ALL = {
    (resource.api, resource.kind): resource
    for resource in (
        *RUNNERS,
        POD,
        SERVICE,
        INGRESS,
        CLAIM,
        RESOURCE_CLAIM_TEMPLATE,
        SECRET,
        CONFIG_MAP,
        NAMESPACE,
        NODE,
        PRIORITY_CLASS,
        ROLE_BINDING,
        QUEUE,
        POD_GROUP,
        SHARD,
    )
}


def resource_of(manifest: Manifest) -> Resource:
    return _ALL[manifest["apiVersion"], manifest["kind"]]


def find_resource(manifest: Manifest) -> Resource | None:
    """The kind of an object; None if no cluster was asked for it yet."""
    return _ALL.get((manifest["apiVersion"], manifest["kind"]))


def remember_kind(resource: Resource) -> None:
    """From now on objects of this kind can be written: the API server told how it is called in paths."""
    if resource not in CONTROLLERS.values():
        _DISCOVERED[resource.key] = _ALL[resource.api, resource.kind] = resource


def controller_by_key(key: str) -> Resource:
    return CONTROLLERS.get(key) or _DISCOVERED[key]


def is_controller(resource: Resource) -> bool:
    return resource in CONTROLLERS.values() or resource in _DISCOVERED.values()


def path_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return resource_of(manifest).path(metadata.get("namespace", ""), metadata["name"])
