"""What fields do on a cluster where that differs from a container of this machine."""

from collections.abc import Iterator, Mapping

from fairlead.engines.declared.effect import ClusterEffect
from fairlead.kinds import role_members

#: From the path of a field, or from what the paths of several begin with, to its effect; the longest one counts.
ON_CLUSTER: Mapping[str, ClusterEffect] = {
    "compute.gpuDevicesRequest": ClusterEffect(
        words="devices of its own, assigned by KAI and the node's device plugin"
    ),
    "compute.gpuPortionRequest": ClusterEffect(
        words="KAI puts it on a device that has room; nothing enforces its share"
    ),
    "compute.gpuMemoryRequest": ClusterEffect(
        words="KAI puts it on a device that has room; nothing enforces its share"
    ),
    "compute.gpuPortionLimit": ClusterEffect(unless="KAI enforces no limit above the request"),
    "compute.gpuMemoryLimit": ClusterEffect(unless="KAI enforces no limit above the request"),
    "terminationGracePeriodSeconds": ClusterEffect(words="the time between TERM and KILL, at least a second"),
    "tolerations[].seconds": ClusterEffect(words="a taint that comes later evicts the pod after so many seconds"),
    "storage.pvc[].existingPvc": ClusterEffect(words="one that the server or the cluster has, or a new one"),
    "storage.pvc[].dataSharing": ClusterEffect(unless="pods mount claims of their own namespace only"),
    "storage.pvc[].claimInfo.storageClass": ClusterEffect(words="the cluster's class of that name"),
    "storage.pvc[].claimInfo.volumeMode": ClusterEffect(words="a file system, or a device as the class provides it"),
    "storage.pvc[].claimInfo.accessModes.": ClusterEffect(words="asked of the class"),
    "storage.pvc[].claimInfo.addedAttrValues[].": ClusterEffect(words="annotations of the claim"),
    "storage.pvc[].claimInfo.size": ClusterEffect(words="asked of the class"),
    "storage.dataVolume[].": ClusterEffect(words="the claim, in its own project; of another project: refused"),
    "storage.git[].secretRef.authenticationMethod": ClusterEffect(words="by password or by key"),
    "storage.hostPath[].path": ClusterEffect(words="a folder of the node (refused unless allowed)"),
    "storage.nfs[].name": ClusterEffect(),
    "storage.nfs[].": ClusterEffect(
        unless="handed to the node, whose kernel must have a client; no test has seen a mount"
    ),
    "storage.s3[].bucket": ClusterEffect(words="its objects, copied in; changes go back at the end"),
    "security.uidGidSource": ClusterEffect(words="custom ids, or the image's own; fromIdpToken: refused"),
    "security.hostIpc": ClusterEffect(words="true: the node's (refused unless allowed)"),
    "security.hostNetwork": ClusterEffect(words="true: the node's (refused unless allowed)"),
    "security.capabilities[]": ClusterEffect(
        words="held by the process (beyond the level baseline refused unless allowed by name)"
    ),
    "security.seccompProfileType": ClusterEffect(
        words="the runtime's own filter, or none (Unconfined: refused unless allowed)"
    ),
    "security.allowPrivilegeEscalation": ClusterEffect(words="false: no_new_privs"),
    "ports[].serviceType": ClusterEffect(words="a service of that type"),
    "sshAuthMountPath": ClusterEffect(words="where the MPI operator puts the keys"),
    "mpiLauncherCreationPolicy": ClusterEffect(
        words="when the launcher starts, where restartPolicy is OnFailure; with Never always after its workers"
    ),
    "servingPort.protocol": ClusterEffect(words="HTTP/1.1 is passed on; grpc too, which no test has seen there"),
    "servingPort.clusterLocalAccessOnly": ClusterEffect(words="no URL, a service of the cluster"),
}
_ALIKE = ClusterEffect()


def find_on_cluster(path: str) -> ClusterEffect:
    """What a field does there; fields of a role do what they do in the whole spec."""
    role, _, inner = path.partition(".")
    if role in role_members():
        return find_on_cluster(inner)
    if path.endswith(".exclude"):
        # One rule for all lists, before any engine sees them.
        return _ALIKE
    return next((ON_CLUSTER[start] for start in beginnings(path) if start in ON_CLUSTER), _ALIKE)


def beginnings(path: str) -> Iterator[str]:
    """The path itself, and the beginnings that it shares with others, the longest first."""
    yield path
    for end in range(len(path) - 1, 0, -1):
        if path[end - 1] == ".":
            yield path[:end]
