"""Members that only workloads of several roles, or those that serve, have."""

from fairlead.engines.declared.effect import Effect, idle, seen

_TRAINING = "e2e/test_distributed.py::"
_GROUPS = "e2e/test_distributed_inference.py::"
_UNSEEN = "no test has seen it yet"

EFFECTS: dict[str, Effect] = {
    "distributedFramework": seen("which variables pods get", f"{_TRAINING}test_tensorflow_is_told_who_takes_part"),
    "numWorkers": seen("so many workers", f"{_TRAINING}test_ranks_meet_and_the_workload_completes_with_its_master"),
    "minReplicas": idle(_UNSEEN),
    "maxReplicas": idle(_UNSEEN),
    "slotsPerWorker": idle("MPI gets no host file yet"),
    "cleanPodPolicy": idle(_UNSEEN),
    "sshAuthMountPath": idle("nothing is reached by SSH here"),
    "mpiLauncherCreationPolicy": idle(_UNSEEN),
    "masterSpecSameAsWorker": seen("false: no master", f"{_TRAINING}test_without_master_the_first_worker_leads"),
    "workers": seen("so many workers in each group", f"{_GROUPS}test_every_pod_knows_its_place"),
    "replicas": seen("so many groups", f"{_GROUPS}test_scaling_up_and_down"),
    "startupPolicy": seen("when workers start", f"{_GROUPS}test_workers_start_when_their_leader_is_ready"),
    "servingPort.port": seen("a URL", f"{_GROUPS}test_two_groups_bind_the_same_ports_and_their_workers_find_them"),
    "servingPort.authorizationType": seen("who may send requests", f"{_GROUPS}test_only_those_who_may_send_requests"),
    "servingPort.authorizedUsers[]": idle(_UNSEEN),
    "servingPort.authorizedGroups[]": idle(_UNSEEN),
    "servingPort.exposeExternally": idle(_UNSEEN),
    "servingPort.exposedUrl": idle(_UNSEEN),
}
