"""What fields do on a cluster where that differs from a container of this machine."""

from collections.abc import Iterator, Mapping

from fairlead.engines.declared.effect import ClusterEffect
from fairlead.kinds import role_members

#: From the path of a field, or from what the paths of several begin with, to its effect; the longest one counts.
ON_CLUSTER: Mapping[str, ClusterEffect] = {
    "compute.gpuDevicesRequest": ClusterEffect(
        words="devices for this pod alone, assigned by KAI and the device plugin of the node"
    ),
    "compute.gpuPortionRequest": ClusterEffect(
        words="KAI chooses a device with enough room; nothing enforces the share"
    ),
    "compute.gpuMemoryRequest": ClusterEffect(
        words="KAI chooses a device with enough room; nothing enforces the share"
    ),
    "compute.gpuPortionLimit": ClusterEffect(unless="no effect: KAI enforces no limit above the request"),
    "compute.gpuMemoryLimit": ClusterEffect(unless="no effect: KAI enforces no limit above the request"),
    "terminationGracePeriodSeconds": ClusterEffect(words="the time between TERM and KILL, at least a second"),
    "tolerations[].seconds": ClusterEffect(words="the time after which a taint that is added later evicts the pod"),
    "storage.pvc[].existingPvc": ClusterEffect(
        words="true: mounts a claim that the server or the cluster has; false: creates it if it does not exist"
    ),
    "storage.pvc[].dataSharing": ClusterEffect(unless="no effect: pods can mount only claims of their own namespace"),
    "storage.pvc[].claimInfo.storageClass": ClusterEffect(words="the storage class of the cluster"),
    "storage.pvc[].claimInfo.volumeMode": ClusterEffect(
        words="a file system or a block device, as the storage class provides it"
    ),
    "storage.pvc[].claimInfo.accessModes.": ClusterEffect(words="requested from the storage class"),
    "storage.pvc[].claimInfo.addedAttrValues[].": ClusterEffect(words="annotations of the claim"),
    "storage.pvc[].claimInfo.size": ClusterEffect(words="requested from the storage class"),
    "storage.dataVolume[].": ClusterEffect(
        words="the claim of the data volume; refused if it belongs to another project"
    ),
    "storage.git[].secretRef.authenticationMethod": ClusterEffect(
        words="whether the secret holds a password or an SSH key"
    ),
    "storage.hostPath[].path": ClusterEffect(words="a folder of the node; refused unless the server allows it"),
    "storage.nfs[].name": ClusterEffect(),
    "storage.nfs[].": ClusterEffect(
        unless="mounted by the node, if its kernel has an NFS client (no test covers this)"
    ),
    "storage.s3[].bucket": ClusterEffect(
        words="its objects are copied to the pod; changes are uploaded when the pod ends"
    ),
    "security.uidGidSource": ClusterEffect(
        words="custom: the given ids; otherwise those of the image; fromIdpToken is refused"
    ),
    "security.hostIpc": ClusterEffect(words="true: shares that of the node; refused unless the server allows it"),
    "security.hostNetwork": ClusterEffect(words="true: shares that of the node; refused unless the server allows it"),
    "security.capabilities[]": ClusterEffect(
        words="the process has these capabilities; those beyond the level baseline must be allowed by the server"
    ),
    "security.seccompProfileType": ClusterEffect(
        words="the filter of the runtime; Unconfined must be allowed by the server"
    ),
    "security.allowPrivilegeEscalation": ClusterEffect(words="false: sets no_new_privs"),
    "ports[].serviceType": ClusterEffect(words="the type of the Service"),
    "sshAuthMountPath": ClusterEffect(words="the folder in which the MPI operator puts the SSH keys"),
    "mpiLauncherCreationPolicy": ClusterEffect(
        words="whether the launcher starts with the workers or after them; with restartPolicy Never always after them"
    ),
    "servingPort.protocol": ClusterEffect(
        words="http: HTTP/1.1; grpc: HTTP/2 without TLS (no test covers grpc on a cluster)"
    ),
    "servingPort.clusterLocalAccessOnly": ClusterEffect(words="true: a Service in the cluster instead of a URL"),
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
