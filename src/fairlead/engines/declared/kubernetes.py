"""What fields do on a cluster, and the tests that have seen it there; read by the field reference.

Where nothing else is said, a field does there what it does in a container of this machine.
"""

from collections.abc import Iterator, Mapping

import msgspec

_INSIDE = "kubernetes/test_fields.py::test_seen_from_inside"
_PLACED = "kubernetes/test_fields_placement.py::test_types_affinities_and_tolerations_choose_the_node"
_WAITS = "kubernetes/test_fields_placement.py::test_what_no_node_has_is_waited_for"
_SAID = "kubernetes/test_fields_placement.py::test_limits_above_a_share_are_said_to_be_none"
_CLAIMS = "kubernetes/test_fields_storage.py::test_claims_are_made_as_described"
_VOLUME = "kubernetes/test_fields_storage.py::test_claims_of_the_server_outlive_workloads_and_go_with_their_record"
_GIT = "kubernetes/test_fields_storage.py::test_repositories_are_cloned_before_the_start"
_NFS = "kubernetes/test_fields_storage.py::test_an_export_that_cannot_be_mounted_says_so"
_S3 = "kubernetes/test_fields_storage.py::test_buckets_are_copied_in_and_changes_go_back"
_PORTS = "kubernetes/test_fields_network.py::test_ports_are_services_of_their_type"
_URLS = "kubernetes/test_fields_network.py::test_urls_lead_to_pods_and_ask_who_comes"
_PROBES = "kubernetes/test_fields_network.py::test_readiness_is_asked_as_described"
_SHARES = "kubernetes/test_fractions.py::test_two_halves_share_a_device_and_a_third_waits"
_ENDS = "kubernetes/test_fields_life.py::"
_SERVICE = "kubernetes/test_inference.py::"
_GROUPS = "kubernetes/test_distributed_inference.py::"
_GANGS = "kubernetes/test_kinds.py::"
_NAMED = "unit/admission/test_templates.py::test_names_tell_items_apart"
_MPI = "kubernetes/test_mpi.py::"
_UNLESS = "refused unless allowed"
_EXPORTED = "handed to the node, whose kernel must have a client; no test has seen a mount"


class Clustered(msgspec.Struct, frozen=True, kw_only=True):
    """What a field does on a cluster."""

    #: The test that has seen it there, or that a workload says what it does not get.
    proof: str
    #: In other words than on this machine.
    words: str = ""
    #: Why it has no effect there.
    unless: str = ""

    @property
    def is_claimed(self) -> bool:
        return not self.unless


def _seen(proof: str, words: str = "") -> Clustered:
    return Clustered(proof=proof, words=words)


def _idle(why: str, proof: str) -> Clustered:
    return Clustered(proof=proof, unless=why)


#: From the path of a field, or from what the paths of several begin with (longest first), to what becomes of it.
CLUSTERED: Mapping[str, Clustered] = {
    "image": _seen(_INSIDE),
    "imagePullPolicy": _seen(_ENDS + "test_images_and_who_may_have_them"),
    "imagePullSecrets[].": _seen(_ENDS + "test_images_and_who_may_have_them"),
    "command": _seen(_INSIDE),
    "args": _seen(_INSIDE),
    "workingDir": _seen(_INSIDE),
    "createHomeDir": _seen(_INSIDE),
    "environmentVariables[].description": _seen(_ENDS + "test_words_for_people_come_back"),
    "environmentVariables[].": _seen(_INSIDE),
    "compute.cpuCoreRequest": _seen(_WAITS),
    "compute.cpuCoreLimit": _seen(_INSIDE),
    "compute.cpuMemoryRequest": _seen(_WAITS),
    "compute.cpuMemoryLimit": _seen("kubernetes/test_containers.py::test_too_much_memory"),
    "compute.gpuDevicesRequest": _seen(_WAITS, "devices of its own, as KAI and the node's device plugin give them"),
    "compute.gpuRequestType": _seen(_SHARES),
    "compute.gpuPortionRequest": _seen(_SHARES, "KAI puts it on a device that has room; nothing keeps it to its share"),
    "compute.gpuMemoryRequest": _seen(
        "kubernetes/test_fractions.py::test_memory_of_a_device_is_shared_by_what_is_asked",
        "KAI puts it on a device that has room; nothing keeps it to its share",
    ),
    "compute.gpuPortionLimit": _idle("KAI keeps no limit above the request", _SAID),
    "compute.gpuMemoryLimit": _idle("KAI keeps no limit above the request", _SAID),
    "compute.migProfile": _seen(_WAITS),
    "compute.largeShmRequest": _seen(_INSIDE),
    "compute.extendedResources[].": _seen(_WAITS),
    "labels[].": _seen(_INSIDE),
    "annotations[].": _seen(_INSIDE),
    "nodeType": _seen(_PLACED),
    "nodeAffinityRequired.": _seen(_PLACED),
    "podAffinity.": _seen("kubernetes/test_fields_placement.py::test_pods_that_must_stay_together"),
    "tolerations[].name": _seen(_NAMED),
    "tolerations[].seconds": _seen(
        "kubernetes/test_fields_placement.py::test_tolerated_for_so_many_seconds",
        "a taint that comes later takes the pod away after so long",
    ),
    "tolerations[].": _seen(_PLACED),
    "probes.": _seen(_PROBES),
    "storage.pvc[].name": _seen(_NAMED),
    "storage.pvc[].path": _seen(_INSIDE),
    "storage.pvc[].existingPvc": _seen(_INSIDE, "one that the server or the cluster has, or a new one"),
    "storage.pvc[].claimName": _seen(_INSIDE),
    "storage.pvc[].readOnly": _seen(_INSIDE),
    "storage.pvc[].ephemeral": _seen("kubernetes/test_fields_storage.py::test_what_lasts_beyond_a_suspension"),
    "storage.pvc[].dataSharing": _idle("pods mount claims of their own namespace only", _SAID),
    "storage.pvc[].claimInfo.storageClass": _seen(_CLAIMS, "the cluster's class of that name"),
    "storage.pvc[].claimInfo.volumeMode": _seen(_CLAIMS, "a file system, or a device as the class provides it"),
    "storage.pvc[].claimInfo.accessModes.": _seen(_CLAIMS, "asked of the class"),
    "storage.pvc[].claimInfo.addedAttrValues[].": _seen(_CLAIMS, "annotations of the claim"),
    "storage.pvc[].claimInfo.size": _seen(_CLAIMS, "asked of the class"),
    "storage.configMapVolume[].name": _seen(_NAMED),
    "storage.configMapVolume[].": _seen(_INSIDE),
    "storage.secretVolume[].name": _seen(_NAMED),
    "storage.secretVolume[].": _seen(_INSIDE),
    "storage.emptyDirVolume[].name": _seen(_NAMED),
    "storage.emptyDirVolume[].": _seen(_INSIDE),
    "storage.dataVolume[].": _seen(_VOLUME, "the claim, in its own project; of another project: refused"),
    "storage.git[].name": _seen(_NAMED),
    "storage.git[].secretRef.authenticationMethod": _seen(
        "kubernetes/test_fields_storage.py::test_a_repository_over_ssh", "by password or by key"
    ),
    "storage.git[].": _seen(_GIT),
    "storage.hostPath[].name": _seen(_NAMED),
    "storage.hostPath[].mountPropagation": _seen(_ENDS + "test_namespaces_of_the_node"),
    "storage.hostPath[].path": _seen(_INSIDE, f"a folder of the node ({_UNLESS})"),
    "storage.hostPath[].": _seen(_INSIDE),
    "storage.nfs[].name": _seen(_NAMED),
    "storage.nfs[].": _idle(_EXPORTED, _NFS),
    "storage.s3[].name": _seen(_NAMED),
    "storage.s3[].bucket": _seen(_S3, "its objects, copied in; changes go back at the end"),
    "storage.s3[].": _seen(_S3),
    "security.uidGidSource": _seen(_INSIDE, "custom ids, or the image's own; fromIdpToken: refused"),
    "security.hostIpc": _seen(_ENDS + "test_namespaces_of_the_node", f"true: the node's ({_UNLESS})"),
    "security.hostNetwork": _seen(_ENDS + "test_namespaces_of_the_node", f"true: the node's ({_UNLESS})"),
    "security.capabilities[]": _seen(
        _INSIDE, "held by the process (beyond the level baseline refused unless allowed by name)"
    ),
    "security.seccompProfileType": _seen(_INSIDE, f"the runtime's own filter, or none (Unconfined: {_UNLESS})"),
    "security.allowPrivilegeEscalation": _seen(_INSIDE, "false: no_new_privs"),
    "security.runAsNonRoot": _seen(_ENDS + "test_root_is_refused_where_it_is_not_wanted"),
    "security.": _seen(_INSIDE),
    "nodePools[]": _seen("kubernetes/test_pools.py::test_a_workload_without_room_in_its_first_pool_moves_to_the_next"),
    "priorityClass": _seen("kubernetes/test_trainings.py::test_preemption_never_counts_as_failure"),
    "preemptibility": _seen("kubernetes/test_quota.py::test_borrowed_gpus_are_reclaimed"),
    "category": _seen(_ENDS + "test_words_for_people_come_back"),
    "username": _seen(_ENDS + "test_words_for_people_come_back"),
    "tty": _seen("kubernetes/test_sessions.py::test_attached_to_the_main_process"),
    "stdin": _seen("kubernetes/test_sessions.py::test_attached_to_the_main_process"),
    "ports[].name": _seen(_NAMED),
    "ports[].serviceType": _seen(_PORTS, "a service of that type"),
    "ports[].": _seen(_PORTS),
    "exposedUrls[].": _seen(_URLS),
    "relatedUrls[].": _seen(_URLS),
    "backoffLimit": _seen("kubernetes/test_trainings.py::test_a_failing_pod_is_retried_and_then_given_up"),
    "restartPolicy": _seen(_ENDS + "test_restarts_in_place_and_by_new_pods"),
    "terminationGracePeriodSeconds": _seen(_ENDS + "test_the_grace_is_given_and_then_ended"),
    "terminateAfterPreemption": _seen("kubernetes/test_quota.py::test_a_preempted_workload_may_ask_to_end"),
    "preemptionLimit": _seen("kubernetes/test_quota.py::test_a_preempted_workload_may_ask_to_end"),
    "autoDeletionTimeAfterCompletionSeconds": _seen(_ENDS + "test_a_finished_workload_deletes_itself"),
    "completions": _seen("kubernetes/test_trainings.py::test_several_pods_each_on_its_own"),
    "parallelism": _seen("kubernetes/test_trainings.py::test_several_pods_each_on_its_own"),
    "distributedFramework": _seen(_GANGS + "test_distributed_pods_start_together"),
    "numWorkers": _seen(_GANGS + "test_distributed_pods_start_together"),
    "minReplicas": _seen(_ENDS + "test_elastic_pods_and_gangs_without_a_master"),
    "maxReplicas": _seen(_ENDS + "test_elastic_pods_and_gangs_without_a_master"),
    "masterSpecSameAsWorker": _seen(_ENDS + "test_elastic_pods_and_gangs_without_a_master"),
    "slotsPerWorker": _seen(_MPI + "test_mpirun_starts_its_processes_in_the_workers_containers"),
    "sshAuthMountPath": _seen(_MPI + "test_launcher_and_workers_run_together", "where the MPI operator puts the keys"),
    "mpiLauncherCreationPolicy": _seen(
        _MPI + "test_launcher_and_workers_run_together",
        "when the launcher starts, where restartPolicy is OnFailure; with Never always after its workers",
    ),
    "cleanPodPolicy": _seen(_GANGS + "test_a_gang_ends_with_its_master"),
    "servingPort.container": _seen(_SERVICE + "test_who_may_ask"),
    "servingPort.protocol": _seen(
        _SERVICE + "test_who_may_ask", "HTTP/1.1 is passed on; grpc too, which no test has seen there"
    ),
    "servingPort.clusterLocalAccessOnly": _seen(_SERVICE + "test_who_may_ask", "no URL, a service of the cluster"),
    "servingPort.port": _seen(_GROUPS + "test_groups_serve_scale_and_go"),
    "servingPort.exposeExternally": _seen(_GROUPS + "test_who_may_ask_and_where"),
    "servingPort.exposedUrl": _seen(_GROUPS + "test_who_may_ask_and_where"),
    "servingPort.": _seen(_SERVICE + "test_who_may_ask"),
    "autoscaling.concurrencyHardLimit": _seen(_SERVICE + "test_a_pod_gets_no_more_at_once_than_its_limit"),
    "autoscaling.initialReplicas": _seen(_SERVICE + "test_it_sleeps_and_a_request_wakes_it"),
    "autoscaling.activationReplicas": _seen(_SERVICE + "test_it_sleeps_and_a_request_wakes_it"),
    "autoscaling.minReplicas": _seen(_SERVICE + "test_it_sleeps_and_a_request_wakes_it"),
    "autoscaling.scaleToZeroRetentionSeconds": _seen(_SERVICE + "test_it_sleeps_and_a_request_wakes_it"),
    "autoscaling.initializationTimeoutSeconds": _seen(_SERVICE + "test_times_of_requests_and_of_the_start"),
    "autoscaling.": _seen(_SERVICE + "test_pods_follow_the_requests_and_none_fails"),
    "servingConfiguration.": _seen(_SERVICE + "test_times_of_requests_and_of_the_start"),
    "workers": _seen(_GROUPS + "test_groups_serve_scale_and_go"),
    "replicas": _seen(_GROUPS + "test_groups_serve_scale_and_go"),
    "startupPolicy": _seen(_GROUPS + "test_workers_start_when_their_leader_is_ready"),
}

#: Tests that have seen fields in pods of single roles, by how the path of a property begins.
_IN_GROUPS: Mapping[str, str] = {
    "probes.": "kubernetes/test_fields_network.py::test_readiness_is_asked_in_each_role",
    "compute.cpuCoreRequest": "kubernetes/test_fields_placement.py::test_groups_wait_for_what_a_role_asks",
    "compute.gpuPortionRequest": "kubernetes/test_fractions.py::test_a_leader_and_its_worker_share_a_device",
}
_ROLES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "leader": (f"{_INSIDE}_leader_and_worker", _IN_GROUPS),
    "worker": (f"{_INSIDE}_leader_and_worker", _IN_GROUPS),
    "masterSpec": (f"{_INSIDE}_master", {}),
}


def find_clustered(path: str) -> Clustered | None:
    """What is declared of a field, in its role where it has one; nothing where nothing is."""
    role, _, inner = path.partition(".")
    if role not in _ROLES:
        if path.endswith(".exclude"):
            # One rule for all lists, before any engine sees them.
            return _seen(_INSIDE)
        return next((CLUSTERED[start] for start in _starts(path) if start in CLUSTERED), None)
    found = find_clustered(inner)
    if found is None:
        return None
    inside, others = _ROLES[role]
    proof = next((test for start, test in others.items() if inner.startswith(start)), "")
    return msgspec.structs.replace(found, proof=proof or (inside if found.proof == _INSIDE else found.proof))


def _starts(path: str) -> Iterator[str]:
    """The path itself, and the beginnings that it shares with others, the longest first."""
    yield path
    for end in range(len(path) - 1, 0, -1):
        if path[end - 1] == ".":
            yield path[:end]
