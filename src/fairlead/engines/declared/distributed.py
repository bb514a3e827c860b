"""Members that only workloads of several roles, or those that serve, have."""

from collections.abc import Mapping

from fairlead.engines.declared.effect import Effect, idle, seen

_TRAINING = "e2e/test_distributed.py::"
_FRAMEWORKS = "e2e/test_frameworks.py::"
_GROUPS = "e2e/test_distributed_inference.py::"
_SERVING = "e2e/test_groups_serving.py::"
_ROLES = "e2e/test_groups_fields.py::"

EFFECTS: dict[str, Effect] = {
    "distributedFramework": seen("which variables and files pods get", f"{_FRAMEWORKS}test_tensorflow_variables"),
    "numWorkers": seen("so many workers", f"{_TRAINING}test_ranks_meet_and_the_workload_completes_with_its_master"),
    "minReplicas": seen("it runs with so many workers", f"{_FRAMEWORKS}test_an_elastic_training_starts_with_what_fits"),
    "maxReplicas": seen("up to so many workers", f"{_FRAMEWORKS}test_pytorch_variables_of_an_elastic_training"),
    "slotsPerWorker": seen(
        "in the launcher's host file", f"{_FRAMEWORKS}test_mpirun_starts_its_processes_on_the_workers"
    ),
    "cleanPodPolicy": seen("what becomes of pods that still run", f"{_FRAMEWORKS}test_clean_pod_policy"),
    "sshAuthMountPath": idle("nothing is reached by SSH here"),
    "mpiLauncherCreationPolicy": seen(
        "when the launcher starts", f"{_FRAMEWORKS}test_mpirun_starts_its_processes_on_the_workers"
    ),
    "masterSpecSameAsWorker": seen("false: no master", f"{_TRAINING}test_without_master_the_first_worker_leads"),
    "workers": seen("so many workers in each group", f"{_GROUPS}test_every_pod_knows_its_place"),
    "replicas": seen("so many groups", f"{_GROUPS}test_scaling_up_and_down"),
    "startupPolicy": seen("when workers start", f"{_GROUPS}test_workers_start_when_their_leader_is_ready"),
    "servingPort.port": seen("a URL", f"{_GROUPS}test_two_groups_bind_the_same_ports_and_their_workers_find_them"),
    "servingPort.authorizationType": seen("who may send requests", f"{_GROUPS}test_only_those_who_may_send_requests"),
    "servingPort.authorizedUsers[]": seen("these may, others not", f"{_SERVING}test_only_named_users_may"),
    "servingPort.authorizedGroups[]": seen("their members may", f"{_SERVING}test_only_members_of_named_groups_may"),
    "servingPort.exposeExternally": seen(
        "false: for workloads of this cluster", f"{_SERVING}test_inside_the_cluster_only"
    ),
    "servingPort.exposedUrl": seen(
        "where it is reached", f"{_SERVING}test_a_url_of_ones_own_that_is_taken_fails_the_workload"
    ),
}

#: Members that are the spec of a role: the tests that have seen what is in it from inside a pod of that role, by how
#: the path of a property begins.
_INSIDE: dict[str, str] = {
    "probes.": f"{_ROLES}test_probes_are_asked_in_each_role",
    "compute.cpuMemoryLimit": f"{_ROLES}test_memory_is_limited_in_each_role",
    "compute.cpuCoreRequest": f"{_ROLES}test_a_group_waits_for_what_one_role_asks",
    "compute.cpuMemoryRequest": f"{_ROLES}test_a_group_waits_for_what_one_role_asks",
    "compute.extendedResources": f"{_ROLES}test_a_group_waits_for_what_one_role_asks",
    "": f"{_ROLES}test_seen_from_inside_leader_and_worker",
}
_KEPT = f"{_ROLES}test_words_that_are_kept_come_back_as_they_were_sent"
#: Of a master no more is seen than that it has its own: its pod is made as that of a training, where all of it is.
ROLES: Mapping[str, Mapping[str, str]] = {"leader": _INSIDE, "worker": _INSIDE, "masterSpec": {}}


def role_proof(role: str, path: str, is_claimed: bool) -> str:
    """The test that has seen a property in a role, or nothing; for one without effect, that it is kept and told."""
    proofs = ROLES[role].items() if is_claimed else [("", _KEPT)] if ROLES[role] else []
    return next((proof for start, proof in proofs if path.startswith(start)), "")
