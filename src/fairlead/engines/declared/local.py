"""What every field does on the local engine, as text for the reference and for `fairlead explain`.

The tests that prove each effect are listed in `tests/field_proofs`.
"""

from collections.abc import Mapping

from fairlead.engines.declared.effect import Effect

_SHARE = "nothing enforces the share of a device: the process must keep to it"
_NO_IMAGE = "no image is used on the host runtime"
_IDS = "refused if the server is not root; in shared mode, ids of root and of the machine's users need --allow"
_NAMED = "identifies the item: an item of a request replaces the template's item of the same name"


def _by_loop(host: str = "", unless: str = "", container: str = "") -> Effect:
    """An effect of the control loop, on every engine alike."""
    return Effect(host=host, unless=unless, container=container, is_of_loop=True)


#: By REST path, with `[]` behind a list.
EFFECTS: Mapping[str, Effect] = {
    # Image, command and environment
    "image": Effect(unless="the process uses this machine's own files", container="the image that is run"),
    "imagePullPolicy": Effect(unless=_NO_IMAGE, container="when the runtime pulls the image"),
    "imagePullSecrets[].name": Effect(unless=_NO_IMAGE, container="the runtime logs in to the registry with it"),
    "imagePullSecrets[].userCredential": Effect(unless=_NO_IMAGE, container="the secret is a credential of the caller"),
    "command": Effect(
        host="the program to run, split into words as a shell does",
        unless="required, because only a container runtime knows the entry point of an image",
        container="replaces the entry point of the image",
    ),
    "args": Effect(host="arguments of the command", container="replaces the arguments of the image"),
    "workingDir": Effect(host="the directory in which the process starts"),
    "createHomeDir": Effect(host="creates a home directory for the pod"),
    "tty": Effect(host="the process gets a terminal"),
    "stdin": Effect(host="standard input stays open; otherwise it is empty"),
    "environmentVariables[].name": Effect(host="the variable's name"),
    "environmentVariables[].value": Effect(host="its value"),
    "environmentVariables[].secret.name": Effect(host="the secret that holds the value"),
    "environmentVariables[].secret.key": Effect(host="the key of the value"),
    "environmentVariables[].configMap.name": Effect(host="the config map that holds the value"),
    "environmentVariables[].configMap.key": Effect(host="the key of the value"),
    "environmentVariables[].podFieldRef.path": Effect(host="the field of the pod that gives the value"),
    "environmentVariables[].userCredential.name": Effect(host="the credential of the caller that holds the value"),
    "environmentVariables[].userCredential.key": Effect(host="the key of the value"),
    "environmentVariables[].description": Effect(host="stored and shown, without other effect"),
    "labels[].name": Effect(host="set on the pods; variables can read it from there (podFieldRef)"),
    "labels[].value": Effect(host="set on the pods; variables can read it from there (podFieldRef)"),
    "annotations[].name": Effect(host="set on the pods; variables can read it from there (podFieldRef)"),
    "annotations[].value": Effect(host="set on the pods; variables can read it from there (podFieldRef)"),
    "category": Effect(host="shown; lists can be filtered by it"),
    "username": Effect(host="stored and shown, without other effect"),
    # Compute
    "compute.cpuCoreRequest": Effect(host="reserved on the node; the pod waits until a node has it free"),
    "compute.cpuCoreLimit": Effect(
        host="control groups allow no more CPU time",
        unless="without writable control groups: whole cores by CPU affinity, at a lower priority below one core",
        container="the runtime allows no more CPU time",
    ),
    "compute.cpuMemoryRequest": Effect(host="reserved on the node; the pod waits until a node has it free"),
    "compute.cpuMemoryLimit": Effect(
        host="control groups kill a pod that uses more (OOMKilled)",
        unless="without writable control groups: checked four times a second",
        container="the runtime kills a pod that uses more (OOMKilled)",
    ),
    "compute.gpuDevicesRequest": Effect(host="devices for this pod alone, which its variables name"),
    "compute.gpuRequestType": Effect(host="whether a share is given as a portion or as memory"),
    "compute.gpuPortionRequest": Effect(host="reserved on the device; a variable tells the process", unless=_SHARE),
    "compute.gpuPortionLimit": Effect(host="a variable tells the process, in bytes", unless=_SHARE),
    "compute.gpuMemoryRequest": Effect(host="reserved on the device; a variable tells the process", unless=_SHARE),
    "compute.gpuMemoryLimit": Effect(host="a variable tells the process", unless=_SHARE),
    "compute.migProfile": Effect(host="requests the extended resource of that slice"),
    "compute.largeShmRequest": Effect(
        host="shared memory without the limit of 64 MB", unless="in personal mode, pods use the machine's /dev/shm"
    ),
    "compute.extendedResources[].resource": Effect(
        host="a resource that nodes declare; the pod waits until a node has it free"
    ),
    "compute.extendedResources[].quantity": Effect(host="the amount that is reserved"),
    # Security
    "security.uidGidSource": Effect(
        host="custom: the given ids; otherwise the user that the server chooses",
        unless="fromIdpToken: the owner in personal mode; refused in shared mode without an identity provider",
        container="custom: the given ids; otherwise the user of the image",
    ),
    "security.runAsUid": Effect(host="the user id of the process, with uidGidSource custom", unless=_IDS),
    "security.runAsGid": Effect(host="the group id of the process, with uidGidSource custom", unless=_IDS),
    "security.supplementalGroups": Effect(
        host="further group ids of the process, with uidGidSource custom", unless=_IDS
    ),
    "security.runAsNonRoot": Effect(host="a pod that would run as root is refused"),
    "security.readOnlyRootFilesystem": Effect(
        host="only volumes and /dev/shm are writable", unless="refused if pods are not isolated"
    ),
    "security.capabilities[]": Effect(
        host="the process has these capabilities",
        unless="refused if the server is not root; in shared mode each needs --allow",
    ),
    "security.dropAllCapabilities": Effect(
        host="processes of the pod can only get the capabilities that are listed",
        unless="in personal mode without root: refused, except with allowPrivilegeEscalation false",
    ),
    "security.seccompProfileType": Effect(
        host="RuntimeDefault: denies the system calls that container runtimes deny; Unconfined: no filter",
        unless="refused on architectures for which there is no filter",
        container="the filter of the runtime, or none",
    ),
    "security.allowPrivilegeEscalation": Effect(
        host="false: sets no_new_privs; always set in shared mode, unless --allow root-user",
        unless="true is refused in shared mode, unless --allow root-user",
    ),
    "security.hostIpc": Effect(
        host="in shared mode, pods have an IPC namespace of their own unless true",
        unless="true is refused in shared mode, unless --allow host-namespaces",
    ),
    "security.hostNetwork": Effect(
        host="pods have a network of their own unless true",
        unless="true is refused in shared mode, unless --allow host-namespaces; "
        "in personal mode only pods that serve have their own",
    ),
    # Storage
    "storage.pvc[].name": _by_loop(host=_NAMED),
    "storage.pvc[].path": Effect(host="the mount path of the claim"),
    "storage.pvc[].existingPvc": Effect(host="true: mounts an existing claim; false: creates it if it does not exist"),
    "storage.pvc[].claimName": Effect(host="the name of the claim"),
    "storage.pvc[].readOnly": Effect(host="mounted read-only"),
    "storage.pvc[].ephemeral": Effect(host="the claim is deleted when the workload stops"),
    "storage.pvc[].dataSharing": Effect(unless="claims belong to one project; data volumes share them with others"),
    "storage.pvc[].claimInfo.size": Effect(host="the maximum size"),
    "storage.pvc[].claimInfo.storageClass": Effect(host="the folder in which the claim is stored"),
    "storage.pvc[].claimInfo.accessModes.readWriteOnce": Effect(
        host="pods on one node can write; pods on other nodes wait"
    ),
    "storage.pvc[].claimInfo.accessModes.readOnlyMany": Effect(host="if no other mode is set, nobody can write"),
    "storage.pvc[].claimInfo.accessModes.readWriteMany": Effect(host="pods on several nodes can write"),
    "storage.pvc[].claimInfo.volumeMode": Effect(host="Filesystem: a file system; Block: refused"),
    "storage.pvc[].claimInfo.addedAttrValues[].key": Effect(host="stored with the claim"),
    "storage.pvc[].claimInfo.addedAttrValues[].value": Effect(host="stored with the claim"),
    "storage.configMapVolume[].name": _by_loop(host=_NAMED),
    "storage.configMapVolume[].configMap": Effect(host="the config map whose keys appear as files"),
    "storage.configMapVolume[].mountPath": Effect(host="the mount path"),
    "storage.configMapVolume[].subPath": Effect(host="the only key to mount"),
    "storage.configMapVolume[].defaultMode": Effect(host="the permissions of the files"),
    "storage.secretVolume[].name": _by_loop(host=_NAMED),
    "storage.secretVolume[].secret": Effect(host="the secret whose keys appear as files, in memory"),
    "storage.secretVolume[].mountPath": Effect(host="the mount path"),
    "storage.secretVolume[].defaultMode": Effect(host="the permissions of the files"),
    "storage.emptyDirVolume[].name": _by_loop(host=_NAMED),
    "storage.emptyDirVolume[].path": Effect(host="an empty folder, deleted with the pod"),
    "storage.emptyDirVolume[].medium": Effect(host="Memory: the files are kept in memory"),
    "storage.emptyDirVolume[].sizeLimit": Effect(host="the size of its file system"),
    "storage.dataVolume[].id": Effect(host="the data volume, mounted read-only"),
    "storage.dataVolume[].mountPath": Effect(host="the mount path"),
    "storage.git[].name": _by_loop(host=_NAMED),
    "storage.git[].repository": Effect(host="the repository, cloned before the pod starts"),
    "storage.git[].branch": Effect(host="the branch to clone"),
    "storage.git[].revision": Effect(host="the revision to check out"),
    "storage.git[].path": Effect(host="the path of the clone"),
    "storage.git[].passwordSecret": Effect(host="the secret with user name and password"),
    "storage.git[].secretKeyOfUser": Effect(host="the key in the secret"),
    "storage.git[].secretKeyOfPassword": Effect(host="the key in the secret"),
    "storage.git[].secretRef.name": Effect(host="the secret with the credentials"),
    "storage.git[].secretRef.authenticationMethod": Effect(host="whether the secret holds a password or an SSH key"),
    "storage.git[].secretRef.secretKeyOfUser": Effect(host="the key in the secret"),
    "storage.git[].secretRef.secretKeyOfPassword": Effect(host="the key in the secret"),
    "storage.hostPath[].name": _by_loop(host=_NAMED),
    "storage.hostPath[].path": Effect(
        host="a folder of this machine", unless="refused in shared mode, unless below a folder of --allow host-path"
    ),
    "storage.hostPath[].mountPath": Effect(host="the mount path"),
    "storage.hostPath[].readOnly": Effect(host="mounted read-only unless false"),
    "storage.hostPath[].mountPropagation": Effect(host="whether mounts that are made later appear in the pod"),
    "storage.nfs[].name": _by_loop(host=_NAMED),
    "storage.nfs[].path": Effect(
        unless="the folder of the server, if this kernel has an NFS client (no test covers this); otherwise refused"
    ),
    "storage.nfs[].server": Effect(
        unless="the server, if this kernel has an NFS client (no test covers this); otherwise refused"
    ),
    "storage.nfs[].mountPath": Effect(
        unless="the mount path, if this kernel has an NFS client (no test covers this); otherwise refused"
    ),
    "storage.nfs[].readOnly": Effect(
        unless="read-only unless false, if this kernel has an NFS client (no test covers this); otherwise refused"
    ),
    "storage.s3[].name": _by_loop(host=_NAMED),
    "storage.s3[].bucket": Effect(host="its objects are copied to the pod; changes are uploaded when the pod ends"),
    "storage.s3[].path": Effect(host="the folder with the objects as files"),
    "storage.s3[].url": Effect(host="the address of the service"),
    "storage.s3[].accessKeySecret": Effect(host="the secret with the key that signs requests"),
    "storage.s3[].secretKeyOfAccessKeyId": Effect(host="the key in the secret"),
    "storage.s3[].secretKeyOfSecretKey": Effect(host="the key in the secret"),
    # Network
    "probes.readiness.initialDelaySeconds": Effect(host="the time before the first probe"),
    "probes.readiness.periodSeconds": Effect(host="the time between two probes"),
    "probes.readiness.timeoutSeconds": Effect(host="a probe that takes longer has failed"),
    "probes.readiness.successThreshold": Effect(host="the number of successful probes after which the pod is ready"),
    "probes.readiness.failureThreshold": Effect(host="the number of failed probes after which the pod is not ready"),
    "probes.readiness.handler.httpGet.path": Effect(host="the path that is requested"),
    "probes.readiness.handler.httpGet.port": Effect(host="the port of the pod"),
    "probes.readiness.handler.httpGet.host": Effect(host="the Host header of the request"),
    "probes.readiness.handler.httpGet.scheme": Effect(host="HTTP or HTTPS"),
    "ports[].name": _by_loop(host=_NAMED),
    "ports[].container": Effect(host="the port inside the pod"),
    "ports[].serviceType": Effect(
        host="a port of this machine that forwards connections to ready pods; NodePort uses 30000 to 32767"
    ),
    "ports[].external": Effect(
        host="the port of this machine", unless="the workload fails if the port is in use; the message says by whom"
    ),
    "ports[].toolType": Effect(host="shown with the port"),
    "ports[].toolName": Effect(host="shown with the port"),
    "exposedUrls[].name": Effect(host="shown with the URL if no tool is named"),
    "exposedUrls[].container": Effect(host="the port behind the URL"),
    "exposedUrls[].url": Effect(
        host="its host and path; default: <workload>-<project> below the domain of the server",
        unless="the workload fails if the URL is in use",
    ),
    "exposedUrls[].authorizationType": Effect(host="checked for every request by the proxy"),
    "exposedUrls[].authorizedUsers[]": Effect(host="only these users and service accounts may open it"),
    "exposedUrls[].authorizedGroups[]": Effect(host="only members of these groups may open it"),
    "exposedUrls[].toolType": Effect(host="shown with the URL"),
    "exposedUrls[].toolName": Effect(host="shown with the URL"),
    "relatedUrls[].name": Effect(host="shown with the URL"),
    "relatedUrls[].url": Effect(host="listed with the URLs of the workload"),
    "relatedUrls[].type": Effect(host="shown with the URL"),
    # Placement
    "nodeType": _by_loop(host="only nodes whose label run.ai/type has this value"),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].key": _by_loop(host="the label of the node"),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].operator": _by_loop(
        host="how the label is compared with the values"
    ),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].values[]": _by_loop(host="the values"),
    "podAffinity.type": _by_loop(host="places the pods of the workload together"),
    "podAffinity.key": _by_loop(host="the node label whose value is the same for all pods"),
    "tolerations[].name": _by_loop(host=_NAMED),
    "tolerations[].operator": _by_loop(host="how the taint's value is compared"),
    "tolerations[].key": _by_loop(host="the key of the taint"),
    "tolerations[].value": _by_loop(host="the value of the taint"),
    "tolerations[].effect": _by_loop(host="the effect of the taint"),
    "tolerations[].seconds": _by_loop(unless="no effect: nodes of this engine get no taints while pods run"),
    "nodePools[]": _by_loop(host="the node pools, tried in this order"),
    "priorityClass": _by_loop(host="workloads of a higher priority are scheduled first"),
    "preemptibility": _by_loop(host="whether the workload can be evicted for others"),
    # Lifecycle
    "completions": _by_loop(host="the number of pods that must succeed"),
    "parallelism": _by_loop(host="the number of pods that run at the same time"),
    "backoffLimit": _by_loop(host="the number of failed pods that are replaced"),
    "restartPolicy": _by_loop(host="whether a failed pod is replaced or restarts in place"),
    "terminationGracePeriodSeconds": Effect(host="the time between TERM and KILL; 0 kills at once"),
    "terminateAfterPreemption": _by_loop(host="true: an evicted workload ends instead of waiting again"),
    "preemptionLimit": _by_loop(host="after more preemptions than this, the workload has failed"),
    "autoDeletionTimeAfterCompletionSeconds": _by_loop(host="the time from the end of the workload to its deletion"),
    # Several roles
    "distributedFramework": _by_loop(host="decides which variables and files the pods get"),
    "numWorkers": _by_loop(host="the number of workers"),
    "minReplicas": _by_loop(host="the number of workers with which it can run"),
    "maxReplicas": _by_loop(host="the number of workers that it can grow to"),
    "slotsPerWorker": _by_loop(host="the slots per worker in the host file of the launcher"),
    "cleanPodPolicy": _by_loop(host="which pods are deleted when the workload has ended"),
    "sshAuthMountPath": _by_loop(unless="no effect: workers are not reached by SSH on this engine"),
    "mpiLauncherCreationPolicy": _by_loop(host="whether the launcher starts with the workers or after them"),
    "masterSpecSameAsWorker": _by_loop(host="false without a masterSpec: there is no master"),
    "workers": _by_loop(host="the number of workers in each group"),
    "replicas": _by_loop(host="the number of groups"),
    "startupPolicy": _by_loop(host="whether workers start with the leader or when it is ready"),
    "servingPort.port": _by_loop(host="the port behind the URL"),
    "servingPort.authorizationType": _by_loop(host="who may send requests"),
    "servingPort.authorizedUsers[]": _by_loop(host="only these users and service accounts may send requests"),
    "servingPort.authorizedGroups[]": _by_loop(host="only members of these groups may send requests"),
    "servingPort.exposeExternally": _by_loop(host="false: only workloads of this cluster can reach it"),
    "servingPort.exposedUrl": _by_loop(host="the URL"),
    # Serving
    "servingPort.container": _by_loop(host="the port behind the URL"),
    "servingPort.protocol": _by_loop(
        host="http: HTTP/1.1; grpc: HTTP/2 without TLS",
        unless="grpc is refused if the server distinguishes URLs by their paths",
    ),
    "servingPort.clusterLocalAccessOnly": _by_loop(host="true: a port of this machine instead of a URL"),
    "autoscaling.minReplicas": _by_loop(
        host="the minimum number of pods; with 0, no pod runs while there are no requests"
    ),
    "autoscaling.maxReplicas": _by_loop(host="the maximum number of pods"),
    "autoscaling.initialReplicas": _by_loop(host="the number of pods at the start"),
    "autoscaling.activationReplicas": _by_loop(host="the number of pods when a request arrives and no pod runs"),
    "autoscaling.metric": _by_loop(host="the measure of the load"),
    "autoscaling.metricThreshold": _by_loop(host="the load for one pod"),
    "autoscaling.metricThresholdPercentage": _by_loop(host="the percentage of the threshold from which pods are added"),
    "autoscaling.concurrencyHardLimit": _by_loop(
        host="the requests that a pod gets at the same time; further ones wait"
    ),
    "autoscaling.scaleToZeroRetentionSeconds": _by_loop(
        host="the time that the last pod is kept after the last request"
    ),
    "autoscaling.scaleDownDelaySeconds": _by_loop(
        host="the time that the load must stay lower before pods are removed"
    ),
    "autoscaling.initializationTimeoutSeconds": _by_loop(host="as in servingConfiguration"),
    "servingConfiguration.initializationTimeoutSeconds": _by_loop(
        host="a revision that is not ready after this time has failed"
    ),
    "servingConfiguration.requestTimeoutSeconds": _by_loop(
        host="a request whose answer has not begun after this time gets 504"
    ),
}
