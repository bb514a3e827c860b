"""Volumes on the local engine: provided, or the workload fails before its start."""

from fairlead.engines.declared.effect import Effect, idle, named, seen


def _seen(host: str, name: str, file: str = "contract/test_local_volumes.py", *, unless: str = "") -> Effect:
    return seen(host, f"{file}::test_{name}", unless=unless)


def _fetched(host: str, name: str) -> Effect:
    return _seen(host, name, "contract/test_local_fetches.py")


def _bucket(host: str, name: str) -> Effect:
    return _seen(host, name, "contract/test_local_buckets.py")


def _nfs(words: str) -> Effect:
    return idle(f"{words}; {_NFS}", proof=f"contract/test_local_volumes.py::test_{_NO_NFS}")


_CLAIM = "claim_is_shared_by_pods_and_outlives_them"
_MAP = "config_map_volume_its_sub_path_and_mode"
_HIDDEN = "secret_volume_is_in_memory_and_for_the_pod_alone"
_HOST = "host_path_below_an_allowed_folder_only"
_NFS = "where the kernel can mount it, which no test has seen; refused elsewhere"
_NO_NFS = "nfs_without_a_client_in_the_kernel_is_refused"

EFFECTS: dict[str, Effect] = {
    "storage.pvc[].name": named(),
    "storage.pvc[].path": _seen("where the claim is mounted", _CLAIM),
    "storage.pvc[].existingPvc": _seen("one that is there, or a new one", _CLAIM),
    "storage.pvc[].claimName": _seen("which claim", _CLAIM),
    "storage.pvc[].readOnly": _seen("mounted read-only", "claim_access_modes_read_only_many"),
    "storage.pvc[].ephemeral": _seen(
        "gone when the workload stops", "ephemeral_claim_is_the_workloads_own_until_it_stops"
    ),
    "storage.pvc[].dataSharing": idle(
        "a claim is its project's; a data volume shares it with others",
        proof="e2e/test_fields_storage.py::test_data_sharing_says_that_it_is_not_enforced",
    ),
    "storage.pvc[].claimInfo.size": _seen("its bound, watched", "a_claim_that_is_only_watched_evicts_its_pod"),
    "storage.pvc[].claimInfo.storageClass": _seen("the folder that it lies in", "storage_class_chooses_the_folder"),
    "storage.pvc[].claimInfo.accessModes.readWriteOnce": _seen(
        "alone: pods on other nodes wait until it is free", "claim_read_write_once_is_mounted_on_one_node_at_a_time"
    ),
    "storage.pvc[].claimInfo.accessModes.readOnlyMany": _seen(
        "alone: nobody writes", "claim_access_modes_read_only_many"
    ),
    "storage.pvc[].claimInfo.accessModes.readWriteMany": _seen("can be written by several pods", _CLAIM),
    "storage.pvc[].claimInfo.volumeMode": _seen(
        "Filesystem: a file system; Block: refused before the start",
        "what_cannot_be_provided_fails_before_the_start",
        "e2e/test_fields_storage.py",
    ),
    "storage.pvc[].claimInfo.addedAttrValues[].key": _seen(
        "kept with the claim", "annotations_are_kept_with_the_claim"
    ),
    "storage.pvc[].claimInfo.addedAttrValues[].value": _seen(
        "kept with the claim", "annotations_are_kept_with_the_claim"
    ),
    "storage.configMapVolume[].name": named(),
    "storage.configMapVolume[].configMap": _seen("its keys as files", _MAP),
    "storage.configMapVolume[].mountPath": _seen("where they appear", _MAP),
    "storage.configMapVolume[].subPath": _seen("one of them alone", _MAP),
    "storage.configMapVolume[].defaultMode": _seen("the files' permissions", _MAP),
    "storage.secretVolume[].name": named(),
    "storage.secretVolume[].secret": _seen("its keys as files in memory", _HIDDEN),
    "storage.secretVolume[].mountPath": _seen("where they appear", _HIDDEN),
    "storage.secretVolume[].defaultMode": _seen("the files' permissions", _HIDDEN),
    "storage.emptyDirVolume[].name": named(),
    "storage.emptyDirVolume[].path": _seen("an empty folder that ends with the pod", "empty_dir_path"),
    "storage.emptyDirVolume[].medium": _seen("Memory: a file system in memory", "empty_dir_medium_and_its_size"),
    "storage.emptyDirVolume[].sizeLimit": _seen(
        "a file system of that size", "empty_dir_size_limit_is_a_file_system_of_that_size"
    ),
    "storage.dataVolume[].id": _seen("the shared claim, read-only", "data_volume_is_the_shared_claim_read_only"),
    "storage.dataVolume[].mountPath": _seen("where it appears", "data_volume_is_the_shared_claim_read_only"),
    "storage.git[].name": named(),
    "storage.git[].repository": _fetched("what is cloned before the start", "git_branch_and_revision"),
    "storage.git[].branch": _fetched("which branch", "git_branch_and_revision"),
    "storage.git[].revision": _fetched("which revision", "git_branch_and_revision"),
    "storage.git[].path": _fetched("where the clone appears", "git_branch_and_revision"),
    "storage.git[].passwordSecret": _fetched("how it is let in", "git_password"),
    "storage.git[].secretKeyOfUser": _fetched("which value of the secret", "git_password"),
    "storage.git[].secretKeyOfPassword": _fetched("which value of the secret", "git_password"),
    "storage.git[].secretRef.name": _fetched("how it is let in", "git_ssh_key"),
    "storage.git[].secretRef.authenticationMethod": _fetched("by password or by key", "git_ssh_key"),
    "storage.git[].secretRef.secretKeyOfUser": _fetched("which value of the secret", "git_ssh_key"),
    "storage.git[].secretRef.secretKeyOfPassword": _fetched("which value of the secret", "git_ssh_key"),
    "storage.hostPath[].name": named(),
    "storage.hostPath[].path": _seen("a folder of this machine", _HOST, unless="refused in shared mode unless allowed"),
    "storage.hostPath[].mountPath": _seen("where it appears", _HOST),
    "storage.hostPath[].readOnly": _seen("read-only unless false", "host_path_read_only_false"),
    "storage.hostPath[].mountPropagation": _seen("whether later mounts appear", "host_path_mount_propagation"),
    "storage.nfs[].name": named(),
    "storage.nfs[].path": _nfs("the server's folder"),
    "storage.nfs[].server": _nfs("the server"),
    "storage.nfs[].mountPath": _nfs("where it appears"),
    "storage.nfs[].readOnly": _nfs("read-only unless false"),
    "storage.s3[].name": named(),
    "storage.s3[].bucket": _bucket(
        "its objects, copied in; changes go back at the end", "s3_changes_go_back_at_the_end"
    ),
    "storage.s3[].path": _bucket("where they appear as files", "s3_objects_are_files"),
    "storage.s3[].url": _bucket("the service", "s3_objects_are_files"),
    "storage.s3[].accessKeySecret": _bucket("requests are signed with it", "s3_key_names"),
    "storage.s3[].secretKeyOfAccessKeyId": _bucket("which value of the secret", "s3_key_names"),
    "storage.s3[].secretKeyOfSecretKey": _bucket("which value of the secret", "s3_key_names"),
}
