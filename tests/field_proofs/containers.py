"""Tests that have seen what fields do in a container; the others are given to the runtime in the same way."""

_BOX = "e2e/test_fields_container.py::test_"
_PODS = "e2e/test_container_pods.py::test_"
_IMAGE = "e2e/test_fields_image.py::test_"
_WORDS = _IMAGE + "command_args_and_working_dir"
_FILES = _BOX + "files_of_config_maps_and_secrets"
_CLAIM = _BOX + "a_claim_is_the_same_for_containers_and_processes"
_MPI = _PODS + "mpirun_starts_its_processes_in_the_workers_containers"
_SERVING = _BOX + "ports_urls_and_probes"

#: From the path of a field, or from what the paths of several begin with, to the test.
CONTAINED: dict[str, str] = {
    "image": _IMAGE + "image",
    "imagePullPolicy": _IMAGE + "image_pull_policy",
    "imagePullSecrets[].name": _BOX + "image_pull_secrets_name",
    "imagePullSecrets[].userCredential": _BOX + "image_pull_secrets_user_credential",
    "command": _WORDS,
    "args": _WORDS,
    "workingDir": _WORDS,
    "createHomeDir": _BOX + "create_home_dir",
    "environmentVariables[].name": _IMAGE + "environment_variables",
    "environmentVariables[].value": _IMAGE + "environment_variables",
    "annotations[]": _IMAGE + "the_runtime_is_chosen_by_annotation",
    "security.uidGidSource": _IMAGE + "security",
    "security.runAsUid": _IMAGE + "security",
    "security.runAsGid": _IMAGE + "security",
    "security.readOnlyRootFilesystem": _IMAGE + "security",
    "security.allowPrivilegeEscalation": _IMAGE + "security",
    "compute.cpuCoreLimit": _BOX + "limits",
    "compute.cpuMemoryLimit": _IMAGE + "cpu_memory_limit",
    "compute.gpuDevicesRequest": _BOX + "gpu_environment",
    "compute.largeShmRequest": _BOX + "large_shm_request",
    "storage.configMapVolume[].": _FILES,
    "storage.secretVolume[].": _FILES,
    "storage.emptyDirVolume[].": _BOX + "empty_dirs",
    "storage.pvc[].path": _CLAIM,
    "storage.pvc[].claimName": _CLAIM,
    "storage.pvc[].existingPvc": _CLAIM,
    "storage.pvc[].readOnly": _CLAIM,
    "storage.pvc[].claimInfo.size": _CLAIM,
    "storage.hostPath[].path": _BOX + "host_path",
    "storage.hostPath[].mountPath": _BOX + "host_path",
    "storage.hostPath[].readOnly": _BOX + "host_path",
    "storage.git[].repository": _BOX + "git",
    "storage.git[].path": _BOX + "git",
    "storage.s3[].bucket": _PODS + "s3",
    "storage.s3[].path": _PODS + "s3",
    "storage.s3[].url": _PODS + "s3",
    "storage.s3[].accessKeySecret": _PODS + "s3",
    "storage.dataVolume[].id": _PODS + "data_volume",
    "storage.dataVolume[].mountPath": _PODS + "data_volume",
    "distributedFramework": _MPI,
    "numWorkers": _MPI,
    "slotsPerWorker": _MPI,
    "environmentVariables[].secret.name": _PODS + "environment_variables_of_many_lines",
    "environmentVariables[].secret.key": _PODS + "environment_variables_of_many_lines",
    "probes.readiness.periodSeconds": _SERVING,
    "probes.readiness.handler.httpGet.path": _SERVING,
    "probes.readiness.handler.httpGet.port": _SERVING,
    "ports[].container": _SERVING,
    "ports[].serviceType": _SERVING,
    "exposedUrls[].container": _SERVING,
}


def find_contained(path: str) -> str:
    """The test that has seen a field's effect in a container; empty if none has."""
    if path in CONTAINED:
        return CONTAINED[path]
    return next(
        (test for start, test in CONTAINED.items() if start.endswith((".", "[]")) and path.startswith(start)), ""
    )
