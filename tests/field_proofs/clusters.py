"""Tests that have seen what fields do on a cluster or, if they do nothing there, that the workload says so."""

from fairlead.engines.declared.kubernetes import beginnings

_INSIDE = "kubernetes/test_fields.py::test_seen_from_inside"
#: By file and function: the paths of the fields, or what the paths of several begin with.
SEEN_BY: dict[str, dict[str, list[str]]] = {
    "kubernetes/test_fields.py": {
        "test_seen_from_inside": [
            "image",
            "command",
            "args",
            "workingDir",
            "createHomeDir",
            "environmentVariables[].",
            "compute.cpuCoreLimit",
            "compute.largeShmRequest",
            "labels[].",
            "annotations[].",
            "storage.pvc[].path",
            "storage.pvc[].existingPvc",
            "storage.pvc[].claimName",
            "storage.pvc[].readOnly",
            "storage.configMapVolume[].",
            "storage.secretVolume[].",
            "storage.emptyDirVolume[].",
            "storage.hostPath[].path",
            "storage.hostPath[].",
            "security.uidGidSource",
            "security.capabilities[]",
            "security.seccompProfileType",
            "security.allowPrivilegeEscalation",
            "security.",
        ],
    },
    "kubernetes/test_fields_life.py": {
        "test_images_and_who_may_have_them": ["imagePullPolicy", "imagePullSecrets[]."],
        "test_messages_for_people_come_back": ["environmentVariables[].description", "category", "username"],
        "test_namespaces_of_the_node": [
            "storage.hostPath[].mountPropagation",
            "security.hostIpc",
            "security.hostNetwork",
        ],
        "test_root_is_refused_where_it_is_not_wanted": ["security.runAsNonRoot"],
        "test_restarts_in_place_and_by_new_pods": ["restartPolicy"],
        "test_the_grace_is_given_and_then_ended": ["terminationGracePeriodSeconds"],
        "test_a_finished_workload_deletes_itself": ["autoDeletionTimeAfterCompletionSeconds"],
        "test_elastic_pods_and_gangs_without_a_master": ["minReplicas", "maxReplicas", "masterSpecSameAsWorker"],
    },
    "kubernetes/test_fields_placement.py": {
        "test_what_no_node_has_is_waited_for": [
            "compute.cpuCoreRequest",
            "compute.cpuMemoryRequest",
            "compute.gpuDevicesRequest",
            "compute.migProfile",
            "compute.extendedResources[].",
        ],
        "test_limits_above_a_share_are_said_to_have_no_effect": [
            "compute.gpuPortionLimit",
            "compute.gpuMemoryLimit",
            "storage.pvc[].dataSharing",
        ],
        "test_types_affinities_and_tolerations_choose_the_node": [
            "nodeType",
            "nodeAffinityRequired.",
            "tolerations[].",
        ],
        "test_pods_that_must_stay_together": ["podAffinity."],
        "test_tolerated_for_so_many_seconds": ["tolerations[].seconds"],
    },
    "kubernetes/test_containers.py": {
        "test_too_much_memory": ["compute.cpuMemoryLimit"],
    },
    "kubernetes/test_fractions.py": {
        "test_two_halves_share_a_device_and_a_third_waits": ["compute.gpuRequestType", "compute.gpuPortionRequest"],
        "test_memory_of_a_device_is_shared_by_what_is_asked": ["compute.gpuMemoryRequest"],
    },
    "unit/admission/test_templates.py": {
        "test_names_distinguish_items": [
            "tolerations[].name",
            "storage.pvc[].name",
            "storage.configMapVolume[].name",
            "storage.secretVolume[].name",
            "storage.emptyDirVolume[].name",
            "storage.git[].name",
            "storage.hostPath[].name",
            "storage.nfs[].name",
            "storage.s3[].name",
            "ports[].name",
        ],
    },
    "kubernetes/test_fields_network.py": {
        "test_readiness_is_asked_as_described": ["probes."],
        "test_ports_are_services_of_their_type": ["ports[].serviceType", "ports[]."],
        "test_urls_lead_to_pods_and_ask_who_comes": ["exposedUrls[].", "relatedUrls[]."],
    },
    "kubernetes/test_fields_storage.py": {
        "test_what_lasts_beyond_a_suspension": ["storage.pvc[].ephemeral"],
        "test_claims_are_made_as_described": [
            "storage.pvc[].claimInfo.storageClass",
            "storage.pvc[].claimInfo.volumeMode",
            "storage.pvc[].claimInfo.accessModes.",
            "storage.pvc[].claimInfo.addedAttrValues[].",
            "storage.pvc[].claimInfo.size",
        ],
        "test_claims_of_the_server_outlive_workloads_and_go_with_their_record": ["storage.dataVolume[]."],
        "test_a_repository_over_ssh": ["storage.git[].secretRef.authenticationMethod"],
        "test_repositories_are_cloned_before_the_start": ["storage.git[]."],
        "test_an_export_that_cannot_be_mounted_says_so": ["storage.nfs[]."],
        "test_buckets_are_copied_in_and_changes_go_back": ["storage.s3[].bucket", "storage.s3[]."],
    },
    "kubernetes/test_pools.py": {
        "test_a_workload_without_room_in_its_first_pool_moves_to_the_next": ["nodePools[]"],
    },
    "kubernetes/test_trainings.py": {
        "test_preemption_never_counts_as_failure": ["priorityClass"],
        "test_a_failing_pod_is_retried_and_then_given_up": ["backoffLimit"],
        "test_several_pods_each_on_its_own": ["completions", "parallelism"],
    },
    "kubernetes/test_quota.py": {
        "test_borrowed_gpus_are_reclaimed": ["preemptibility"],
        "test_a_preempted_workload_may_ask_to_end": ["terminateAfterPreemption", "preemptionLimit"],
    },
    "kubernetes/test_sessions.py": {
        "test_attached_to_the_main_process": ["tty", "stdin"],
    },
    "kubernetes/test_kinds.py": {
        "test_distributed_pods_start_together": ["distributedFramework", "numWorkers"],
        "test_a_gang_ends_with_its_master": ["cleanPodPolicy"],
    },
    "kubernetes/test_mpi.py": {
        "test_mpirun_starts_its_processes_in_the_workers_containers": ["slotsPerWorker"],
        "test_launcher_and_workers_run_together": ["sshAuthMountPath", "mpiLauncherCreationPolicy"],
    },
    "kubernetes/test_inference.py": {
        "test_who_may_ask": [
            "servingPort.container",
            "servingPort.protocol",
            "servingPort.clusterLocalAccessOnly",
            "servingPort.",
        ],
        "test_a_pod_gets_no_more_at_once_than_its_limit": ["autoscaling.concurrencyHardLimit"],
        "test_it_sleeps_and_a_request_wakes_it": [
            "autoscaling.initialReplicas",
            "autoscaling.activationReplicas",
            "autoscaling.minReplicas",
            "autoscaling.scaleToZeroRetentionSeconds",
        ],
        "test_times_of_requests_and_of_the_start": [
            "autoscaling.initializationTimeoutSeconds",
            "servingConfiguration.",
        ],
        "test_pods_follow_the_requests_and_no_request_fails": ["autoscaling."],
    },
    "kubernetes/test_distributed_inference.py": {
        "test_groups_serve_scale_and_go": ["servingPort.port", "workers", "replicas"],
        "test_who_may_ask_and_where": ["servingPort.exposeExternally", "servingPort.exposedUrl"],
        "test_workers_start_when_their_leader_is_ready": ["startupPolicy"],
    },
}
CLUSTER_PROOFS = {
    path: f"{file}::{function}"
    for file, functions in SEEN_BY.items()
    for function, paths in functions.items()
    for path in paths
}
#: Tests that have seen fields in pods of single roles, by how the path of a property begins.
_IN_GROUPS = {
    "probes.": "kubernetes/test_fields_network.py::test_readiness_is_asked_in_each_role",
    "compute.cpuCoreRequest": "kubernetes/test_fields_placement.py::test_groups_wait_for_what_a_role_asks",
    "compute.gpuPortionRequest": "kubernetes/test_fractions.py::test_a_leader_and_its_worker_share_a_device",
}
_ROLES: dict[str, tuple[str, dict[str, str]]] = {
    "leader": (f"{_INSIDE}_leader_and_worker", _IN_GROUPS),
    "worker": (f"{_INSIDE}_leader_and_worker", _IN_GROUPS),
    "masterSpec": (f"{_INSIDE}_master", {}),
}


def find_cluster_proof(path: str) -> str:
    """The test that has seen a field on a cluster, in its role if it has one; empty if none has."""
    role, _, inner = path.partition(".")
    if role not in _ROLES:
        if path.endswith(".exclude"):
            return _INSIDE
        return next((CLUSTER_PROOFS[start] for start in beginnings(path) if start in CLUSTER_PROOFS), "")
    proof = find_cluster_proof(inner)
    inside, others = _ROLES[role]
    own = next((test for start, test in others.items() if inner.startswith(start)), "")
    return own or (inside if proof == _INSIDE else proof)
