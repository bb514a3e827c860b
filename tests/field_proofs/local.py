"""Tests that have seen what fields do on the host runtime or, if they do nothing there, that the workload says so."""

from tests.field_proofs.roles import ROLES, role_proof

#: By file and function: the paths of the fields.
SEEN_BY: dict[str, dict[str, list[str]]] = {
    "e2e/test_fields_records.py": {
        "test_image_fields_on_the_host_runtime": [
            "image",
            "imagePullPolicy",
            "imagePullSecrets[].name",
            "imagePullSecrets[].userCredential",
        ],
        "test_description": ["environmentVariables[].description"],
        "test_category": ["category"],
        "test_username": ["username"],
        "test_tolerations_seconds": ["tolerations[].seconds"],
    },
    "e2e/test_fields_execution.py": {
        "test_command": ["command"],
        "test_args": ["args"],
        "test_working_dir": ["workingDir"],
        "test_tty": ["tty"],
        "test_stdin": ["stdin"],
        "test_environment_variables_name": ["environmentVariables[].name"],
        "test_environment_variables_value": ["environmentVariables[].value"],
        "test_environment_variables_pod_field_ref": ["environmentVariables[].podFieldRef.path"],
        "test_labels": ["labels[].name", "labels[].value"],
        "test_annotations": ["annotations[].name", "annotations[].value"],
    },
    "contract/test_local_volumes.py": {
        "test_create_home_dir": ["createHomeDir"],
        "test_shared_memory_is_small_unless_asked_for": ["compute.largeShmRequest"],
        "test_claim_is_shared_by_pods_and_outlives_them": [
            "storage.pvc[].path",
            "storage.pvc[].existingPvc",
            "storage.pvc[].claimName",
            "storage.pvc[].claimInfo.accessModes.readWriteMany",
        ],
        "test_claim_access_modes_read_only_many": [
            "storage.pvc[].readOnly",
            "storage.pvc[].claimInfo.accessModes.readOnlyMany",
        ],
        "test_ephemeral_claim_is_the_workloads_own_until_it_stops": ["storage.pvc[].ephemeral"],
        "test_a_claim_that_is_only_watched_evicts_its_pod": ["storage.pvc[].claimInfo.size"],
        "test_storage_class_chooses_the_folder": ["storage.pvc[].claimInfo.storageClass"],
        "test_claim_read_write_once_is_mounted_on_one_node_at_a_time": [
            "storage.pvc[].claimInfo.accessModes.readWriteOnce"
        ],
        "test_annotations_are_kept_with_the_claim": [
            "storage.pvc[].claimInfo.addedAttrValues[].key",
            "storage.pvc[].claimInfo.addedAttrValues[].value",
        ],
        "test_config_map_volume_its_sub_path_and_mode": [
            "storage.configMapVolume[].configMap",
            "storage.configMapVolume[].mountPath",
            "storage.configMapVolume[].subPath",
            "storage.configMapVolume[].defaultMode",
        ],
        "test_secret_volume_is_in_memory_and_for_the_pod_alone": [
            "storage.secretVolume[].secret",
            "storage.secretVolume[].mountPath",
            "storage.secretVolume[].defaultMode",
        ],
        "test_empty_dir_path": ["storage.emptyDirVolume[].path"],
        "test_empty_dir_medium_and_its_size": ["storage.emptyDirVolume[].medium"],
        "test_empty_dir_size_limit_is_a_file_system_of_that_size": ["storage.emptyDirVolume[].sizeLimit"],
        "test_data_volume_is_the_shared_claim_read_only": ["storage.dataVolume[].id", "storage.dataVolume[].mountPath"],
        "test_host_path_below_an_allowed_folder_only": ["storage.hostPath[].path", "storage.hostPath[].mountPath"],
        "test_host_path_read_only_false": ["storage.hostPath[].readOnly"],
        "test_host_path_mount_propagation": ["storage.hostPath[].mountPropagation"],
        "test_nfs_without_a_client_in_the_kernel_is_refused": [
            "storage.nfs[].path",
            "storage.nfs[].server",
            "storage.nfs[].mountPath",
            "storage.nfs[].readOnly",
        ],
    },
    "e2e/test_secrets.py": {
        "test_values_reach_the_process": [
            "environmentVariables[].secret.name",
            "environmentVariables[].secret.key",
            "environmentVariables[].configMap.name",
            "environmentVariables[].configMap.key",
            "environmentVariables[].userCredential.name",
            "environmentVariables[].userCredential.key",
        ],
    },
    "e2e/test_fields_compute.py": {
        "test_cpu_core_request": ["compute.cpuCoreRequest"],
        "test_cpu_core_limit": ["compute.cpuCoreLimit"],
        "test_cpu_memory_request": ["compute.cpuMemoryRequest"],
        "test_cpu_memory_limit": ["compute.cpuMemoryLimit"],
        "test_gpu_devices_request": ["compute.gpuDevicesRequest"],
        "test_gpu_request_type": ["compute.gpuRequestType"],
        "test_gpu_portion_request": ["compute.gpuPortionRequest"],
        "test_gpu_portion_limit": ["compute.gpuPortionLimit"],
        "test_gpu_memory_request": ["compute.gpuMemoryRequest"],
        "test_gpu_memory_limit": ["compute.gpuMemoryLimit"],
        "test_mig_profile": ["compute.migProfile"],
        "test_extended_resources": ["compute.extendedResources[].resource", "compute.extendedResources[].quantity"],
    },
    "e2e/test_fields_security.py": {
        "test_uid_gid_source": ["security.uidGidSource"],
        "test_run_as_uid": ["security.runAsUid"],
        "test_run_as_gid": ["security.runAsGid"],
        "test_supplemental_groups": ["security.supplementalGroups"],
        "test_run_as_non_root": ["security.runAsNonRoot"],
        "test_read_only_root_filesystem": ["security.readOnlyRootFilesystem"],
        "test_capabilities": ["security.capabilities[]"],
        "test_seccomp_profile_type": ["security.seccompProfileType"],
        "test_allow_privilege_escalation": ["security.allowPrivilegeEscalation"],
        "test_host_ipc": ["security.hostIpc"],
        "test_host_network": ["security.hostNetwork"],
    },
    "contract/test_local_identity.py": {
        "test_all_capabilities_dropped": ["security.dropAllCapabilities"],
    },
    "unit/admission/test_templates.py": {
        "test_names_distinguish_items": [
            "storage.pvc[].name",
            "storage.configMapVolume[].name",
            "storage.secretVolume[].name",
            "storage.emptyDirVolume[].name",
            "storage.git[].name",
            "storage.hostPath[].name",
            "storage.nfs[].name",
            "storage.s3[].name",
            "ports[].name",
            "tolerations[].name",
        ],
    },
    "e2e/test_fields_storage.py": {
        "test_data_sharing_says_that_it_is_not_enforced": ["storage.pvc[].dataSharing"],
        "test_what_cannot_be_provided_fails_before_the_start": ["storage.pvc[].claimInfo.volumeMode"],
    },
    "contract/test_local_fetches.py": {
        "test_git_branch_and_revision": [
            "storage.git[].repository",
            "storage.git[].branch",
            "storage.git[].revision",
            "storage.git[].path",
        ],
        "test_git_password": [
            "storage.git[].passwordSecret",
            "storage.git[].secretKeyOfUser",
            "storage.git[].secretKeyOfPassword",
        ],
        "test_git_ssh_key": [
            "storage.git[].secretRef.name",
            "storage.git[].secretRef.authenticationMethod",
            "storage.git[].secretRef.secretKeyOfUser",
            "storage.git[].secretRef.secretKeyOfPassword",
        ],
    },
    "contract/test_local_buckets.py": {
        "test_s3_changes_go_back_at_the_end": ["storage.s3[].bucket"],
        "test_s3_objects_are_files": ["storage.s3[].path", "storage.s3[].url"],
        "test_s3_key_names": [
            "storage.s3[].accessKeySecret",
            "storage.s3[].secretKeyOfAccessKeyId",
            "storage.s3[].secretKeyOfSecretKey",
        ],
    },
    "contract/test_local_network.py": {
        "test_the_first_question_waits_for_the_initial_delay": ["probes.readiness.initialDelaySeconds"],
        "test_failing_again_after_the_threshold_ends_readiness_and_passing_brings_it_back": [
            "probes.readiness.periodSeconds",
            "probes.readiness.failureThreshold",
        ],
        "test_a_probe_that_hangs_is_given_up_after_its_timeout": ["probes.readiness.timeoutSeconds"],
        "test_as_many_good_answers_in_a_row_as_asked_for": ["probes.readiness.successThreshold"],
        "test_path_and_host_are_what_is_asked": [
            "probes.readiness.handler.httpGet.path",
            "probes.readiness.handler.httpGet.host",
        ],
        "test_a_pod_is_ready_when_its_probe_passes_and_not_before": ["probes.readiness.handler.httpGet.port"],
        "test_https_is_asked_without_looking_at_the_certificate": ["probes.readiness.handler.httpGet.scheme"],
        "test_two_pods_listen_on_the_same_port_at_once": ["ports[].container"],
    },
    "e2e/test_fields_network.py": {
        "test_ports_service_type": ["ports[].serviceType"],
        "test_ports_external": ["ports[].external"],
        "test_ports_tool": ["ports[].toolType", "ports[].toolName"],
        "test_exposed_urls_tool": ["exposedUrls[].name", "exposedUrls[].toolType", "exposedUrls[].toolName"],
        "test_exposed_urls_container": ["exposedUrls[].container"],
        "test_exposed_urls_url": ["exposedUrls[].url"],
        "test_exposed_urls_authorization_type": ["exposedUrls[].authorizationType"],
        "test_exposed_urls_authorized_users": ["exposedUrls[].authorizedUsers[]"],
        "test_exposed_urls_authorized_groups": ["exposedUrls[].authorizedGroups[]"],
        "test_related_urls": ["relatedUrls[].name", "relatedUrls[].url", "relatedUrls[].type"],
    },
    "e2e/test_fields_placement.py": {
        "test_node_type": ["nodeType"],
        "test_node_affinity_required": [
            "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].key",
            "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].operator",
            "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].values[]",
        ],
        "test_pod_affinity": ["podAffinity.type", "podAffinity.key"],
        "test_tolerations": [
            "tolerations[].operator",
            "tolerations[].key",
            "tolerations[].value",
            "tolerations[].effect",
        ],
    },
    "e2e/test_quota.py": {
        "test_node_pools_are_tried_in_order": ["nodePools[]"],
        "test_a_preempted_workload_may_ask_to_end": ["priorityClass", "terminateAfterPreemption"],
        "test_borrowed_gpus_are_reclaimed_with_notices": ["preemptibility"],
    },
    "e2e/test_lifecycle.py": {
        "test_a_sweep_runs_each_pod_on_its_own": ["completions", "parallelism"],
        "test_a_failed_pod_is_retried_until_the_limit": ["backoffLimit"],
        "test_a_restart_makes_a_new_pod_or_restarts_in_place": ["restartPolicy"],
        "test_the_grace_is_given_and_then_ended": ["terminationGracePeriodSeconds"],
        "test_a_finished_workload_deletes_itself": ["autoDeletionTimeAfterCompletionSeconds"],
    },
    "unit/control/test_organization_evictions.py": {
        "test_what_follows_an_eviction": ["preemptionLimit"],
    },
    "e2e/test_frameworks.py": {
        "test_tensorflow_variables": ["distributedFramework"],
        "test_an_elastic_training_starts_with_what_fits": ["minReplicas"],
        "test_pytorch_variables_of_an_elastic_training": ["maxReplicas"],
        "test_mpirun_starts_its_processes_on_the_workers": ["slotsPerWorker", "mpiLauncherCreationPolicy"],
        "test_clean_pod_policy": ["cleanPodPolicy"],
    },
    "e2e/test_distributed.py": {
        "test_ranks_meet_and_the_workload_completes_with_its_master": ["numWorkers"],
        "test_without_master_the_first_worker_leads": ["masterSpecSameAsWorker"],
    },
    "e2e/test_distributed_inference.py": {
        "test_every_pod_knows_its_place": ["workers"],
        "test_scaling_up_and_down": ["replicas"],
        "test_workers_start_when_their_leader_is_ready": ["startupPolicy"],
        "test_two_groups_bind_the_same_ports_and_their_workers_find_them": ["servingPort.port"],
        "test_only_those_who_may_send_requests": ["servingPort.authorizationType"],
    },
    "e2e/test_groups_serving.py": {
        "test_only_named_users_may": ["servingPort.authorizedUsers[]"],
        "test_only_members_of_named_groups_may": ["servingPort.authorizedGroups[]"],
        "test_inside_the_cluster_only": ["servingPort.exposeExternally"],
        "test_a_url_of_ones_own_that_is_taken_fails_the_workload": ["servingPort.exposedUrl"],
    },
    "e2e/test_inference.py": {
        "test_a_service_answers_with_all_its_pods": ["servingPort.container"],
        "test_a_service_of_the_cluster_alone_has_a_port_and_no_url": ["servingPort.clusterLocalAccessOnly"],
    },
    "e2e/test_inference_grpc.py": {
        "test_all_four_ways_of_calling": ["servingPort.protocol"],
    },
    "e2e/test_inference_scaling.py": {
        "test_a_request_to_a_sleeping_service_waits_and_is_answered": ["autoscaling.minReplicas"],
        "test_pods_follow_the_requests_at_once_and_no_request_fails": ["autoscaling.maxReplicas"],
        "test_it_begins_asleep_and_wakes_with_as_many_as_it_should": [
            "autoscaling.initialReplicas",
            "autoscaling.activationReplicas",
        ],
        "test_pods_follow_other_measures": ["autoscaling.metric", "autoscaling.metricThreshold"],
        "test_a_pod_gets_no_more_at_once_than_its_limit": ["autoscaling.concurrencyHardLimit"],
        "test_the_last_pod_is_kept_for_its_retention": ["autoscaling.scaleToZeroRetentionSeconds"],
        "test_pods_stay_for_the_delay_although_the_load_has_gone": ["autoscaling.scaleDownDelaySeconds"],
        "test_a_service_that_is_never_ready_has_failed": ["servingConfiguration.initializationTimeoutSeconds"],
        "test_a_request_that_is_not_answered_in_time_ends_with_504": ["servingConfiguration.requestTimeoutSeconds"],
    },
    "unit/model/spec/test_autoscaling.py": {
        "test_what_one_pod_is_to_bear": ["autoscaling.metricThresholdPercentage"],
        "test_times_are_read_from_both_places_and_the_newer_wins": ["autoscaling.initializationTimeoutSeconds"],
    },
}
PROOFS = {
    path: f"{file}::{function}"
    for file, functions in SEEN_BY.items()
    for function, paths in functions.items()
    for path in paths
}
#: Members `exclude` are one rule for all lists.
EXCLUDE_PROOF = "e2e/test_fields_compute.py::test_extended_resources"


def find_proof(path: str, is_claimed: bool) -> str:
    """The test that has seen a field, in its role if it has one; for one without effect, that the workload says so."""
    role, _, inner = path.partition(".")
    proof = EXCLUDE_PROOF if path.endswith(".exclude") else PROOFS.get(inner if role in ROLES else path, "")
    return role_proof(role, inner, is_claimed) or proof if role in ROLES else proof
