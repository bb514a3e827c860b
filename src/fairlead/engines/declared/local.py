"""What every field does on the local engine, as text for the reference and for `fairlead explain`.

The tests that have seen each effect stand in `tests/field_proofs`.
"""

from collections.abc import Mapping

from fairlead.engines.declared.effect import Effect

_SHARE = "the process is told its share of a device and must keep to it itself"
_NO_IMAGE = "no image is used on the host runtime"
_IDS = "refused without root, and in shared mode for root's and the machine's own ids unless allowed"
_NAMED = "tells items apart: those of a template and of a request with the same name are merged"


def _by_loop(host: str = "", unless: str = "", container: str = "") -> Effect:
    """An effect of the control loop, on every engine alike."""
    return Effect(host=host, unless=unless, container=container, is_of_loop=True)


#: By REST path, with `[]` behind a list.
EFFECTS: Mapping[str, Effect] = {
    # Image, command and environment
    "image": Effect(unless="the process runs on this machine's own file system", container="the image is run"),
    "imagePullPolicy": Effect(unless=_NO_IMAGE, container="when the runtime pulls the image"),
    "imagePullSecrets[].name": Effect(unless=_NO_IMAGE, container="the runtime signs in at a registry with it"),
    "imagePullSecrets[].userCredential": Effect(unless=_NO_IMAGE, container="it is the caller's own credential"),
    "command": Effect(
        host="what runs, split as a shell does",
        unless="without one the workload fails at its start: an image's entry point needs a container runtime",
        container="in place of the image's entry point",
    ),
    "args": Effect(host="behind the command", container="in place of the image's arguments"),
    "workingDir": Effect(host="where the process starts"),
    "createHomeDir": Effect(host="a home directory of its own"),
    "tty": Effect(host="a real terminal"),
    "stdin": Effect(host="an input that stays open; without it the input is empty"),
    "environmentVariables[].name": Effect(host="the variable's name"),
    "environmentVariables[].value": Effect(host="its value"),
    "environmentVariables[].secret.name": Effect(host="a value of the secret"),
    "environmentVariables[].secret.key": Effect(host="which of its values"),
    "environmentVariables[].configMap.name": Effect(host="a value of the config map"),
    "environmentVariables[].configMap.key": Effect(host="which of its values"),
    "environmentVariables[].podFieldRef.path": Effect(host="a field of the pod"),
    "environmentVariables[].userCredential.name": Effect(host="a value of the caller's credential"),
    "environmentVariables[].userCredential.key": Effect(host="which of its values"),
    "environmentVariables[].description": Effect(host="a note for people; kept and shown"),
    "labels[].name": Effect(host="on the pods; downward fields read it"),
    "labels[].value": Effect(host="on the pods; downward fields read it"),
    "annotations[].name": Effect(host="on the pods; downward fields read it"),
    "annotations[].value": Effect(host="on the pods; downward fields read it"),
    "category": Effect(host="a note for people; shown, and lists can be filtered by it"),
    "username": Effect(host="a note for people; kept and shown"),
    # Compute
    "compute.cpuCoreRequest": Effect(host="reserved on the node; the pod waits for it"),
    "compute.cpuCoreLimit": Effect(
        host="no more CPU time, by control group",
        unless="without writable control groups: limited to whole cores, at a lower priority below one",
        container="no more CPU time, by the runtime",
    ),
    "compute.cpuMemoryRequest": Effect(host="reserved on the node; the pod waits for it"),
    "compute.cpuMemoryLimit": Effect(
        host="over it the pod is OOMKilled, by control group",
        unless="without writable control groups: checked four times a second",
        container="over it the pod is OOMKilled, by the runtime",
    ),
    "compute.gpuDevicesRequest": Effect(host="devices of its own; the process is told which"),
    "compute.gpuRequestType": Effect(host="a share by portion or by memory"),
    "compute.gpuPortionRequest": Effect(host="reserved on the device; the process is told it", unless=_SHARE),
    "compute.gpuPortionLimit": Effect(host="the process is told it, in bytes", unless=_SHARE),
    "compute.gpuMemoryRequest": Effect(host="reserved on the device; the process is told it", unless=_SHARE),
    "compute.gpuMemoryLimit": Effect(host="the process is told it", unless=_SHARE),
    "compute.migProfile": Effect(host="asks for the extended resource of that slice"),
    "compute.largeShmRequest": Effect(
        host="shared memory without the small bound of 64 MB", unless="in personal mode it is the machine's own"
    ),
    "compute.extendedResources[].resource": Effect(host="as nodes declare it; the pod waits for it"),
    "compute.extendedResources[].quantity": Effect(host="so much of it is reserved"),
    # Security
    "security.uidGidSource": Effect(
        host="custom ids, or the user that the server gives to pods",
        unless="fromIdpToken: the owner in personal mode, refused in shared mode without an identity provider",
        container="custom ids, or the image's own user",
    ),
    "security.runAsUid": Effect(host="the process's user, with the source custom", unless=_IDS),
    "security.runAsGid": Effect(host="the process's group, with the source custom", unless=_IDS),
    "security.supplementalGroups": Effect(host="its further groups, with the source custom", unless=_IDS),
    "security.runAsNonRoot": Effect(host="a pod that would be root is refused"),
    "security.readOnlyRootFilesystem": Effect(
        host="only volumes and /dev/shm can be written", unless="refused where pods are not isolated"
    ),
    "security.capabilities[]": Effect(
        host="held by the process", unless="refused without root, and in shared mode unless allowed by name"
    ),
    "security.dropAllCapabilities": Effect(
        host="nothing in the pod can hold any that is not named",
        unless="without root refused in personal mode, except with allowPrivilegeEscalation false",
    ),
    "security.seccompProfileType": Effect(
        host="RuntimeDefault: the calls that containers lack are denied; Unconfined: no filter",
        unless="refused on architectures without a filter",
        container="the runtime's own filter, or none",
    ),
    "security.allowPrivilegeEscalation": Effect(
        host="false: no_new_privs; shared mode has it unless allowed",
        unless="true is refused in shared mode unless root is allowed",
    ),
    "security.hostIpc": Effect(
        host="shared pods have their own unless true", unless="true is refused in shared mode unless allowed"
    ),
    "security.hostNetwork": Effect(
        host="pods that serve have their own unless true",
        unless="true is refused in shared mode unless allowed; plain pods keep the machine's",
    ),
    # Storage
    "storage.pvc[].name": _by_loop(host=_NAMED),
    "storage.pvc[].path": Effect(host="where the claim is mounted"),
    "storage.pvc[].existingPvc": Effect(host="one that is there, or a new one"),
    "storage.pvc[].claimName": Effect(host="which claim"),
    "storage.pvc[].readOnly": Effect(host="mounted read-only"),
    "storage.pvc[].ephemeral": Effect(host="gone when the workload stops"),
    "storage.pvc[].dataSharing": Effect(unless="a claim is its project's; a data volume shares it with others"),
    "storage.pvc[].claimInfo.size": Effect(host="its bound, watched"),
    "storage.pvc[].claimInfo.storageClass": Effect(host="the folder that it lies in"),
    "storage.pvc[].claimInfo.accessModes.readWriteOnce": Effect(
        host="alone: pods on other nodes wait until it is free"
    ),
    "storage.pvc[].claimInfo.accessModes.readOnlyMany": Effect(host="alone: nobody writes"),
    "storage.pvc[].claimInfo.accessModes.readWriteMany": Effect(host="can be written by several pods"),
    "storage.pvc[].claimInfo.volumeMode": Effect(host="Filesystem: a file system; Block: refused before the start"),
    "storage.pvc[].claimInfo.addedAttrValues[].key": Effect(host="kept with the claim"),
    "storage.pvc[].claimInfo.addedAttrValues[].value": Effect(host="kept with the claim"),
    "storage.configMapVolume[].name": _by_loop(host=_NAMED),
    "storage.configMapVolume[].configMap": Effect(host="its keys as files"),
    "storage.configMapVolume[].mountPath": Effect(host="where they appear"),
    "storage.configMapVolume[].subPath": Effect(host="one of them alone"),
    "storage.configMapVolume[].defaultMode": Effect(host="the files' permissions"),
    "storage.secretVolume[].name": _by_loop(host=_NAMED),
    "storage.secretVolume[].secret": Effect(host="its keys as files in memory"),
    "storage.secretVolume[].mountPath": Effect(host="where they appear"),
    "storage.secretVolume[].defaultMode": Effect(host="the files' permissions"),
    "storage.emptyDirVolume[].name": _by_loop(host=_NAMED),
    "storage.emptyDirVolume[].path": Effect(host="an empty folder that ends with the pod"),
    "storage.emptyDirVolume[].medium": Effect(host="Memory: a file system in memory"),
    "storage.emptyDirVolume[].sizeLimit": Effect(host="a file system of that size"),
    "storage.dataVolume[].id": Effect(host="the shared claim, read-only"),
    "storage.dataVolume[].mountPath": Effect(host="where it appears"),
    "storage.git[].name": _by_loop(host=_NAMED),
    "storage.git[].repository": Effect(host="what is cloned before the start"),
    "storage.git[].branch": Effect(host="which branch"),
    "storage.git[].revision": Effect(host="which revision"),
    "storage.git[].path": Effect(host="where the clone appears"),
    "storage.git[].passwordSecret": Effect(host="how it signs in"),
    "storage.git[].secretKeyOfUser": Effect(host="which value of the secret"),
    "storage.git[].secretKeyOfPassword": Effect(host="which value of the secret"),
    "storage.git[].secretRef.name": Effect(host="how it signs in"),
    "storage.git[].secretRef.authenticationMethod": Effect(host="by password or by key"),
    "storage.git[].secretRef.secretKeyOfUser": Effect(host="which value of the secret"),
    "storage.git[].secretRef.secretKeyOfPassword": Effect(host="which value of the secret"),
    "storage.hostPath[].name": _by_loop(host=_NAMED),
    "storage.hostPath[].path": Effect(host="a folder of this machine", unless="refused in shared mode unless allowed"),
    "storage.hostPath[].mountPath": Effect(host="where it appears"),
    "storage.hostPath[].readOnly": Effect(host="read-only unless false"),
    "storage.hostPath[].mountPropagation": Effect(host="whether later mounts appear"),
    "storage.nfs[].name": _by_loop(host=_NAMED),
    "storage.nfs[].path": Effect(
        unless="the server's folder; where the kernel can mount it, which no test has seen; refused elsewhere"
    ),
    "storage.nfs[].server": Effect(
        unless="the server; where the kernel can mount it, which no test has seen; refused elsewhere"
    ),
    "storage.nfs[].mountPath": Effect(
        unless="where it appears; where the kernel can mount it, which no test has seen; refused elsewhere"
    ),
    "storage.nfs[].readOnly": Effect(
        unless="read-only unless false; where the kernel can mount it, which no test has seen; refused elsewhere"
    ),
    "storage.s3[].name": _by_loop(host=_NAMED),
    "storage.s3[].bucket": Effect(host="its objects, copied in; changes go back at the end"),
    "storage.s3[].path": Effect(host="where they appear as files"),
    "storage.s3[].url": Effect(host="the service"),
    "storage.s3[].accessKeySecret": Effect(host="requests are signed with it"),
    "storage.s3[].secretKeyOfAccessKeyId": Effect(host="which value of the secret"),
    "storage.s3[].secretKeyOfSecretKey": Effect(host="which value of the secret"),
    # Network
    "probes.readiness.initialDelaySeconds": Effect(host="before the first question"),
    "probes.readiness.periodSeconds": Effect(host="between two questions"),
    "probes.readiness.timeoutSeconds": Effect(host="an answer that takes longer failed"),
    "probes.readiness.successThreshold": Effect(host="so many good answers make it ready"),
    "probes.readiness.failureThreshold": Effect(host="so many bad ones end that"),
    "probes.readiness.handler.httpGet.path": Effect(host="what is asked for"),
    "probes.readiness.handler.httpGet.port": Effect(host="where"),
    "probes.readiness.handler.httpGet.host": Effect(host="the Host header"),
    "probes.readiness.handler.httpGet.scheme": Effect(host="HTTP or HTTPS"),
    "ports[].name": _by_loop(host=_NAMED),
    "ports[].container": Effect(host="the port inside the pod"),
    "ports[].serviceType": Effect(
        host="a listener of this machine that passes connections to ready pods; NodePort from 30000 to 32767"
    ),
    "ports[].external": Effect(
        host="the port of this machine", unless="a taken one fails the workload, naming who holds it"
    ),
    "ports[].toolType": Effect(host="shown with the port"),
    "ports[].toolName": Effect(host="shown with the port"),
    "exposedUrls[].name": Effect(host="shown with the URL, where no tool is named"),
    "exposedUrls[].container": Effect(host="the port behind the URL"),
    "exposedUrls[].url": Effect(
        host="its host and path, with the path kept; else <workload>-<project> below the server's domain",
        unless="a taken one fails the workload",
    ),
    "exposedUrls[].authorizationType": Effect(host="checked by the proxy for every request"),
    "exposedUrls[].authorizedUsers[]": Effect(host="only these users and service accounts"),
    "exposedUrls[].authorizedGroups[]": Effect(host="only members of these groups"),
    "exposedUrls[].toolType": Effect(host="shown with the URL"),
    "exposedUrls[].toolName": Effect(host="shown with the URL"),
    "relatedUrls[].name": Effect(host="shown with the URL"),
    "relatedUrls[].url": Effect(host="listed with the workload's own"),
    "relatedUrls[].type": Effect(host="shown with the URL"),
    # Placement
    "nodeType": _by_loop(host="nodes with the label run.ai/type of that value"),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].key": _by_loop(host="the label that is looked at"),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].operator": _by_loop(host="how it is compared"),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].values[]": _by_loop(host="with what"),
    "podAffinity.type": _by_loop(host="pods of the workload stay together"),
    "podAffinity.key": _by_loop(host="the label whose value is shared"),
    "tolerations[].name": _by_loop(host=_NAMED),
    "tolerations[].operator": _by_loop(host="how the taint's value is compared"),
    "tolerations[].key": _by_loop(host="the taint that is tolerated"),
    "tolerations[].value": _by_loop(host="the taint's value"),
    "tolerations[].effect": _by_loop(host="which effect of it"),
    "tolerations[].seconds": _by_loop(unless="nodes here get no taints while pods run"),
    "nodePools[]": _by_loop(host="tried in order"),
    "priorityClass": _by_loop(host="who goes first"),
    "preemptibility": _by_loop(host="whether it may be evicted"),
    # Lifecycle
    "completions": _by_loop(host="so many pods must end well"),
    "parallelism": _by_loop(host="so many at once"),
    "backoffLimit": _by_loop(host="so many failures are retried"),
    "restartPolicy": _by_loop(host="a new pod, or the same again"),
    "terminationGracePeriodSeconds": Effect(host="the time between TERM and KILL; 0 kills at once"),
    "terminateAfterPreemption": _by_loop(host="an evicted workload ends"),
    "preemptionLimit": _by_loop(host="one preemption more is its end"),
    "autoDeletionTimeAfterCompletionSeconds": _by_loop(host="deleted so long after its end"),
    # Several roles
    "distributedFramework": _by_loop(host="which variables and files pods get"),
    "numWorkers": _by_loop(host="so many workers"),
    "minReplicas": _by_loop(host="it runs with so many workers"),
    "maxReplicas": _by_loop(host="up to so many workers"),
    "slotsPerWorker": _by_loop(host="in the launcher's host file"),
    "cleanPodPolicy": _by_loop(host="what becomes of pods that still run"),
    "sshAuthMountPath": _by_loop(unless="nothing is reached by SSH here"),
    "mpiLauncherCreationPolicy": _by_loop(host="when the launcher starts"),
    "masterSpecSameAsWorker": _by_loop(host="false: no master"),
    "workers": _by_loop(host="so many workers in each group"),
    "replicas": _by_loop(host="so many groups"),
    "startupPolicy": _by_loop(host="when workers start"),
    "servingPort.port": _by_loop(host="a URL"),
    "servingPort.authorizationType": _by_loop(host="who may send requests"),
    "servingPort.authorizedUsers[]": _by_loop(host="these may, others not"),
    "servingPort.authorizedGroups[]": _by_loop(host="their members may"),
    "servingPort.exposeExternally": _by_loop(host="false: for workloads of this cluster"),
    "servingPort.exposedUrl": _by_loop(host="where it is reached"),
    # Serving
    "servingPort.container": _by_loop(host="a URL"),
    "servingPort.protocol": _by_loop(
        host="HTTP/1.1, or with grpc HTTP/2 without a change of protocol, is passed on",
        unless="grpc is refused where URLs are told apart by their paths",
    ),
    "servingPort.clusterLocalAccessOnly": _by_loop(host="no URL, a port of this machine instead"),
    "autoscaling.minReplicas": _by_loop(host="not fewer pods; with 0 it sleeps when nobody asks"),
    "autoscaling.maxReplicas": _by_loop(host="not more pods"),
    "autoscaling.initialReplicas": _by_loop(host="so many at first"),
    "autoscaling.activationReplicas": _by_loop(host="so many when a request wakes it"),
    "autoscaling.metric": _by_loop(host="what is measured"),
    "autoscaling.metricThreshold": _by_loop(host="how much one pod bears"),
    "autoscaling.metricThresholdPercentage": _by_loop(host="from which part of the threshold on pods are added"),
    "autoscaling.concurrencyHardLimit": _by_loop(host="further requests wait"),
    "autoscaling.scaleToZeroRetentionSeconds": _by_loop(host="the last pod stays so long"),
    "autoscaling.scaleDownDelaySeconds": _by_loop(host="a lower load must last so long"),
    "autoscaling.initializationTimeoutSeconds": _by_loop(host="as in servingConfiguration"),
    "servingConfiguration.initializationTimeoutSeconds": _by_loop(host="what is not ready then has failed"),
    "servingConfiguration.requestTimeoutSeconds": _by_loop(host="an answer that has not begun then is 504"),
}
