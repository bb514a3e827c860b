"""The fields of single kinds of workload YAML: for each group a reader, and a writer if REST has the field too.

The counterpart of `conversions.py`, called the same way. Some fields only set defaults (`jupyter`, `tensorboard`): they
are read and never written.
"""

import shlex
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from fairlead.formats.losses import Source, leaves
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.conversions import Put, Reading
from fairlead.formats.yaml.extra_fields import EXTERNAL_URL, SERVING_PORT

_NOTEBOOK, _BOARD = 8888, 6006
_LOGS = "/logs"
_CLASS = "autoscaling.knative.dev/class"
#: The default target of one pod, as in Knative.
_TARGETS = {"concurrency": 100, "throughput": 200}
_MIN_SCALE, _MAX_SCALE = "autoscaling.minReplicas", "autoscaling.maxReplicas"
_METRIC, _TARGET = "autoscaling.metric", "autoscaling.metricThreshold"
_MEASURES = ("concurrency", "throughput", "latency")
_CUSTOM = "custom"
_FRAMEWORK, _WORKERS, _SLOTS = "distributedFramework", "numWorkers", "slotsPerWorker"
_MPI, _PYTORCH = "MPI", "PyTorch"
#: The objects of Kubeflow's jobs: their members, and their REST paths.
_OBJECTS = {
    "mpiJob": {
        "slotsPerWorker": _SLOTS,
        "cleanPodPolicy": "cleanPodPolicy",
        "sshAuthMountPath": "sshAuthMountPath",
        "launcherCreationPolicy": "mpiLauncherCreationPolicy",
    },
    "pyTorchJob": {"elasticPolicy.minReplicas": "minReplicas", "elasticPolicy.maxReplicas": "maxReplicas"},
    "runPolicy": {
        "cleanPodPolicy": "cleanPodPolicy",
        "backoffLimit": "backoffLimit",
        "ttlSecondsAfterFinished": "autoDeletionTimeAfterCompletionSeconds",
    },
}
#: The members that are texts, even if they look like numbers.
_TEXTS = frozenset({"sshAuthMountPath"})


def _read_preemptibility(reading: Reading) -> None:
    for name, choices in (
        ("preemptible", {True: "preemptible", False: "non-preemptible"}),
        ("nonPreemptible", {True: "non-preemptible", False: "preemptible"}),
    ):
        if name in reading.given:
            reading.put("preemptibility", choices[reading.given[name]], name)


# --- Distributed workloads


def _read_distributed(reading: Reading) -> None:
    given = reading.given
    if reading.letter != "D":
        return
    if "jobType" in given:
        reading.put(_FRAMEWORK, given["jobType"], "jobType")
    if given.get("noMaster") is True:
        reading.put("masterSpecSameAsWorker", False, "noMaster")
    for name in _OBJECTS:
        if name in given:
            _read_object(reading, name, given[name])
    for name in ("mpi", "processes", "mpiJob"):
        if name in given and given[name] is not False:
            _set_framework(reading, name, _MPI)
    if "pyTorchJob" in given and reading.get(_FRAMEWORK) not in (None, _PYTORCH):
        reading.wrong("pyTorchJob", f"is given together with a job of {reading.get(_FRAMEWORK)}; remove one of them")
    _read_workers(reading)


def _set_framework(reading: Reading, name: str, framework: str) -> None:
    if reading.get(_FRAMEWORK) not in (None, framework):
        details = f"belongs to {framework} jobs, and jobType is {reading.get(_FRAMEWORK)}; remove one of them"
        reading.wrong(name, details)
    else:
        reading.put(_FRAMEWORK, framework, name)


def _read_object(reading: Reading, name: str, content: Plain) -> None:
    known = _OBJECTS[name]
    for path, given in leaves(content).items():
        value = given if path in _TEXTS else _number(given)
        if path not in known:
            reading.wrong(name, f"has {path}, which is not supported; the members are {', '.join(known)}")
        elif reading.get(known[path]) not in (None, value):
            reading.wrong(name, f"contradicts the rest of the document at {path}; remove one of them")
        else:
            reading.put(known[path], value, name)


def _number(given: Any) -> Any:
    """A number that is written as text is a number, as everywhere in workload YAML."""
    is_number = isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) < 10
    return int(given) if is_number else given


def _read_workers(reading: Reading) -> None:
    workers, processes = reading.given.get("workers"), reading.given.get("processes")
    if workers is not None:
        reading.put(_WORKERS, workers, "workers")
    if processes is None:
        return
    slots = reading.get(_SLOTS)
    slots = slots if isinstance(slots, int) and slots > 0 else 1
    if processes < 1:
        reading.wrong("processes", f"is {processes}; at least 1 is needed")
    elif workers is None:
        reading.put(_WORKERS, -(-processes // slots), "processes")
    elif workers * slots != processes:
        details = f"is {processes}, and workers × slotsPerWorker is {workers * slots}; remove one of them"
        reading.wrong("processes", details)


def _write_distributed(source: Source, put: Put) -> None:
    framework, workers = source.take(_FRAMEWORK), source.take(_WORKERS)
    if framework is not UNSET:
        put("jobType", framework)
    if workers is not UNSET:
        put("workers", workers)
    if source.peek("masterSpecSameAsWorker") is False:
        source.take("masterSpecSameAsWorker")
        put("noMaster", True)
    job: dict[str, Plain] = {}
    for name, belongs in (("mpiJob", framework == _MPI), ("pyTorchJob", framework in (UNSET, _PYTORCH))):
        # Slots, retries and the lifetime have fields of their own.
        for path, rest in _OBJECTS[name].items() if belongs else ():
            if rest not in ("cleanPodPolicy", _SLOTS) and source.peek(rest) is not UNSET:
                _put_inside(job.setdefault(name, {}), path, source.take(rest))
    if source.peek("cleanPodPolicy") is not UNSET:
        job["runPolicy"] = {"cleanPodPolicy": source.take("cleanPodPolicy")}
    for name, content in job.items():
        put(name, content)


def _put_inside(tree: Plain, path: str, value: object) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
    tree[last] = value


# --- Interactive workloads


def _read_notebook(reading: Reading) -> None:
    given = reading.given
    if given.get("jupyter") is not True:
        if "notebookToken" in given:
            reading.remark("notebookToken", "has no effect without jupyter: {value: true}")
        return
    token = shlex.quote(f"--NotebookApp.token={given.get('notebookToken', '')}")
    _fill_in(reading, "jupyter", "jupyter/scipy-notebook", ("start-notebook.sh", token))
    _expose(reading, "jupyter", _NOTEBOOK, "jupyter-notebook")


def _read_board(reading: Reading) -> None:
    given = reading.given
    folder = given.get("tensorboardLogdir")
    if given.get("tensorboard") is not True:
        if folder is not None:
            reading.remark("tensorboardLogdir", "has no effect without tensorboard: {value: true}")
        return
    arguments = f"--logdir={shlex.quote(folder or _LOGS)} --bind_all --port={_BOARD}"
    _fill_in(reading, "tensorboard", "tensorflow/tensorflow", ("tensorboard", arguments))
    _expose(reading, "tensorboard", _BOARD, "tensorboard")
    variables = reading.get("environmentVariables") or []
    if folder is not None and not any(item["name"] == "TENSORBOARD_LOGDIR" for item in variables):
        reading.put(
            "environmentVariables",
            [*variables, {"name": "TENSORBOARD_LOGDIR", "value": folder}],
            "tensorboardLogdir",
        )


def _fill_in(reading: Reading, name: str, image: str, command_line: tuple[str, str]) -> None:
    """The command of the tool, if the document does not set one."""
    if reading.get("image") is None:
        reading.put("image", image, name)
    if reading.get("command") is None and reading.get("args") is None:
        for path, text in zip(("command", "args"), command_line, strict=True):
            reading.put(path, text, name)


def _expose(reading: Reading, name: str, port: int, tool: str) -> None:
    urls = reading.get("exposedUrls") or []
    offered = [item.get("container") for item in (*urls, *(reading.get("ports") or ()))]
    if port not in offered:
        reading.put("exposedUrls", [*urls, {"name": name, "container": port, "toolType": tool}], name)


# --- Inference workloads, and ports of every kind


def _read_ports(reading: Reading) -> None:
    """Ports that REST has elsewhere: those behind a URL, and the serving port."""
    serving = _find_serving(reading)
    number = 0
    while number < len(reading.get("ports") or ()):
        port = reading.get("ports")[number]
        kind = port.get("serviceType")
        if port is serving:
            moved = {key: port[key] for key in ("container", "protocol") if key in port}
            reading.move_item("ports", number, "servingPort", moved)
        elif kind == EXTERNAL_URL:
            moved = {key: value for key, value in port.items() if key not in ("serviceType", "external", "protocol")}
            urls = reading.get("exposedUrls") or []
            reading.put("exposedUrls", [*urls, moved], "ports")
            reading.move_item("ports", number, f"exposedUrls[{len(urls)}]", moved)
        else:
            if kind == SERVING_PORT:
                reading.wrong("ports", "has a ServingPort, but only one port of an inference workload can be it")
            if port.pop("protocol", None) is not None:
                reading.remark("ports", "protocol has an effect only for the serving port of an inference workload")
            number += 1


def _find_serving(reading: Reading) -> Any:
    """The port with serviceType ServingPort; otherwise, in an inference workload, the first port without one."""
    ports = reading.get("ports") or ()
    if reading.letter != "I":
        return None
    serving_port = next((port for port in ports if port.get("serviceType") == SERVING_PORT), None)
    if serving_port is not None or "serviceType" in reading.given:
        return serving_port
    return next((port for port in ports if "serviceType" not in port), None)


def _read_serving(reading: Reading) -> None:
    given = reading.given
    if given.get("isPrivateServiceUrl") is not None:
        if reading.get("servingPort.container") is None:
            details = "applies to the serving port; add an item with serviceType: ServingPort to ports"
            reading.wrong("isPrivateServiceUrl", details)
        else:
            reading.put("servingPort.clusterLocalAccessOnly", given["isPrivateServiceUrl"], "isPrivateServiceUrl")
    if "class" in given:
        annotations = reading.get("annotations") or []
        reading.put("annotations", [*annotations, {"name": _CLASS, "value": given["class"]}], "class")


def _read_scaling(reading: Reading) -> None:
    """Bounds and metric with the defaults of the YAML reference, which differ from those of REST."""
    if reading.letter != "I":
        return
    given = reading.given
    measure = _read_measure(reading)
    sleeps = measure in _TARGETS and reading.get("servingPort") is not None
    minimum = given.get("minScale", 0 if sleeps else 1)
    maximum = given.get("maxScale", max(minimum, 1))
    reading.put(_MIN_SCALE, minimum, "minScale")
    reading.put(_MAX_SCALE, maximum, "maxScale")
    if "metric" in given or (minimum < maximum and (minimum, maximum) != (0, 1)):
        reading.put(_METRIC, measure, "metricName" if given.get("metric") == _CUSTOM else "metric")
        if "target" not in given and measure in _TARGETS:
            reading.put(_TARGET, _TARGETS[measure], "target")
    if "target" in given:
        reading.put(_TARGET, given["target"], "target")


def _read_measure(reading: Reading) -> str:
    metric, name = reading.given.get("metric", "concurrency"), reading.given.get("metricName")
    if metric == _CUSTOM and name is None:
        reading.wrong("metric", "is custom, and metricName is missing; name the metric there")
    if metric != _CUSTOM and name is not None:
        reading.wrong("metricName", "has an effect only with metric: {value: custom}")
    return str(name if metric == _CUSTOM and name is not None else metric)


def _write_scaling(source: Source, put: Put) -> None:
    """Both bounds are written out, because their defaults differ from those of REST."""
    reason = "is written out, because workload YAML has another default"
    minimum = source.take(_MIN_SCALE)
    if minimum is UNSET:
        minimum = 1
        source.lose(_MIN_SCALE, reason, minimum)
    maximum = source.take(_MAX_SCALE)
    if maximum is UNSET:
        maximum = max(minimum, 1)
        source.lose(_MAX_SCALE, reason, maximum)
    put("minScale", minimum)
    put("maxScale", maximum)
    metric, target = source.take(_METRIC), source.take(_TARGET)
    measured = metric
    if metric in _MEASURES:
        put("metric", metric)
    elif metric is not UNSET:
        put("metric", _CUSTOM)
        put("metricName", metric)
    elif minimum < maximum and (minimum, maximum) != (0, 1):
        measured = "concurrency"
        put("metric", measured)
        source.lose(_METRIC, "is concurrency by default", measured)
    if target is not UNSET:
        put("target", target)
    elif measured in _TARGETS:
        put("target", _TARGETS[measured])
        source.lose(_TARGET, f"is {_TARGETS[measured]} by default", _TARGETS[measured])


def write_serving(source: Source, fields: Plain) -> None:
    """The serving port as one of the ports, unless that would open it to others."""
    root = "servingPort."
    if source.peek(f"{root}container") is UNSET:
        return
    if source.peek(f"{root}authorizationType") not in (UNSET, "public"):
        reason = "workload YAML cannot restrict who sends requests, so the port is omitted"
        for path in [path for path in source.left if path.startswith(root)]:
            source.lose(path, reason)
        return
    if source.peek(f"{root}authorizationType") is not UNSET:
        source.lose(f"{root}authorizationType", "is the default, and workload YAML has no such field")
    port = {"container": source.take(f"{root}container"), "serviceType": SERVING_PORT}
    if source.peek(f"{root}protocol") is not UNSET:
        port["protocol"] = source.take(f"{root}protocol")
    items = fields.setdefault("ports", {"items": {}})["items"]
    key = "serving"
    while key in items:
        key += "-port"
    items[key] = {"value": port}
    if source.peek(f"{root}clusterLocalAccessOnly") is not UNSET:
        fields["isPrivateServiceUrl"] = {"value": source.take(f"{root}clusterLocalAccessOnly")}


READERS: tuple[Callable[[Reading], None], ...] = (
    _read_ports,
    _read_preemptibility,
    _read_distributed,
    _read_notebook,
    _read_board,
    _read_serving,
    _read_scaling,
)
WRITERS: tuple[tuple[tuple[str, ...], Callable[[Source, Put], None]], ...] = (
    (("jobType", "workers", "noMaster", "mpiJob", "pyTorchJob", "runPolicy"), _write_distributed),
    (("minScale", "maxScale", "metric", "metricName", "target"), _write_scaling),
)
