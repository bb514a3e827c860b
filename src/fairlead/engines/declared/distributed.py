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
}
