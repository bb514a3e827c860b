"""Members that only workloads of several roles have."""

from fairlead.engines.declared.effect import Table, idle

_UNSEEN = "no test has seen it yet"

EFFECTS: Table = {
    "distributedFramework": idle(_UNSEEN),
    "numWorkers": idle(_UNSEEN),
    "minReplicas": idle(_UNSEEN),
    "maxReplicas": idle(_UNSEEN),
    "slotsPerWorker": idle(_UNSEEN),
    "cleanPodPolicy": idle(_UNSEEN),
    "sshAuthMountPath": idle(_UNSEEN),
    "mpiLauncherCreationPolicy": idle(_UNSEEN),
    "masterSpecSameAsWorker": idle(_UNSEEN),
    "workers": idle(_UNSEEN),
    "replicas": idle(_UNSEEN),
    "startupPolicy": idle(_UNSEEN),
    "servingPort.port": idle(_UNSEEN),
    "servingPort.protocol": idle(_UNSEEN),
    "servingPort.authorizationType": idle(_UNSEEN),
    "servingPort.authorizedUsers[]": idle(_UNSEEN),
    "servingPort.authorizedGroups[]": idle(_UNSEEN),
    "servingPort.exposeExternally": idle(_UNSEEN),
    "servingPort.exposedUrl": idle(_UNSEEN),
}
