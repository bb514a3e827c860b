"""Image, command and environment on the local engine."""

from fairlead.engines.declared.effect import Effect, idle, seen

_TESTS = "e2e/test_fields_execution.py::test_"
_SAID = "e2e/test_fields_records.py::test_"
_NO_IMAGE = "no image is used on the host runtime"


def _seen(host: str, name: str, *, unless: str = "", container: str = "") -> Effect:
    return seen(host, _TESTS + name, unless=unless, container=container)


EFFECTS: dict[str, Effect] = {
    "image": idle(
        "the process runs on this machine's own file system",
        container="the image is run",
        proof=_SAID + "image_fields_on_the_host_runtime",
    ),
    "imagePullPolicy": idle(
        _NO_IMAGE, container="when the runtime looks for it elsewhere", proof=_SAID + "image_fields_on_the_host_runtime"
    ),
    "imagePullSecrets[].name": idle(
        _NO_IMAGE, container="lets the runtime in at a registry", proof=_SAID + "image_fields_on_the_host_runtime"
    ),
    "imagePullSecrets[].userCredential": idle(
        _NO_IMAGE, container="it is the caller's own credential", proof=_SAID + "image_fields_on_the_host_runtime"
    ),
    "command": _seen(
        "what runs, split as a shell does",
        "command",
        unless="without one the workload fails at its start: an image's entry point needs a container runtime",
        container="in place of the image's entry point",
    ),
    "args": _seen("behind the command", "args", container="in place of the image's arguments"),
    "workingDir": _seen("where the process starts", "working_dir"),
    "createHomeDir": seen("a home directory of its own", "contract/test_local_volumes.py::test_create_home_dir"),
    "tty": _seen("a real terminal", "tty"),
    "stdin": _seen("an input that stays open; end at once without", "stdin"),
    "environmentVariables[].name": _seen("the variable's name", "environment_variables_name"),
    "environmentVariables[].value": _seen("its value", "environment_variables_value"),
    "environmentVariables[].secret.name": seen(
        "a value of the secret", "e2e/test_secrets.py::test_values_reach_the_process"
    ),
    "environmentVariables[].secret.key": seen(
        "which of its values", "e2e/test_secrets.py::test_values_reach_the_process"
    ),
    "environmentVariables[].configMap.name": seen(
        "a value of the config map", "e2e/test_secrets.py::test_values_reach_the_process"
    ),
    "environmentVariables[].configMap.key": seen(
        "which of its values", "e2e/test_secrets.py::test_values_reach_the_process"
    ),
    "environmentVariables[].podFieldRef.path": _seen(
        "what the pod is or was given", "environment_variables_pod_field_ref"
    ),
    "environmentVariables[].userCredential.name": seen(
        "a value of the caller's credential", "e2e/test_secrets.py::test_values_reach_the_process"
    ),
    "environmentVariables[].userCredential.key": seen(
        "which of its values", "e2e/test_secrets.py::test_values_reach_the_process"
    ),
    "environmentVariables[].description": seen("words for people; kept and shown", _SAID + "description"),
    "labels[].name": _seen("on the pods; podAffinity and downward fields read it", "labels"),
    "labels[].value": _seen("on the pods; podAffinity and downward fields read it", "labels"),
    "annotations[].name": _seen("on the pods; downward fields read it", "annotations"),
    "annotations[].value": _seen("on the pods; downward fields read it", "annotations"),
    "category": seen("words for people; shown, and filtered by", _SAID + "category"),
    "username": seen("words for people; kept and shown", _SAID + "username"),
}
