"""Reads a configuration of dstack: a task is a training, one on several nodes a distributed training, a service is
inference, a development environment is a workspace.

Called by `convert`. The common part is converted, everything else is listed as a loss.
"""

import re
from typing import Any

from msgspec import UNSET

from fairlead.formats.foreign.tasks import (
    ForeignTask,
    annotate,
    ask_for_compute,
    ask_for_gpus,
    missing_image,
    port_in,
    run_on_nodes,
    shell,
    span_of,
    take_all,
    take_name,
    take_ports,
    take_variables,
    unconverted,
    with_variables,
)
from fairlead.formats.losses import Loss, Source
from fairlead.formats.plain import Plain
from fairlead.kinds.inference import INFERENCE
from fairlead.kinds.kind import Kind
from fairlead.kinds.workspace import WORKSPACE
from fairlead.model import time_limit

_SERVICE, _ENVIRONMENT = "service", "dev-environment"
_DURATION = re.compile(r"([1-9]\d{0,7})([smhdw]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
#: What keeps a development environment running, as its editor does in dstack.
_IDLE = "sleep infinity"


def read_dstack(task: Plain) -> ForeignTask:
    source = Source(task)
    spec: Plain = {}
    what = str(take_all(source, "type"))
    for name, member in (("image", "image"), ("working_dir", "workingDir")):
        value = source.take(name)
        if value is not UNSET:
            spec[member] = str(value)
    take_variables(spec, source, "env")
    ask_for_compute(spec, source, ("cpu", "memory"))
    _read_gpus(spec, source)
    if take_all(source, "resources.shm_size") is not None:
        spec.setdefault("compute", {})["largeShmRequest"] = True
    limit = _DURATION.fullmatch(str(source.peek("max_duration")))
    if limit is not None:
        source.take("max_duration")
        annotate(spec, time_limit.ANNOTATION, str(int(limit[1]) * _SECONDS[limit[2]]))
    kind = _read_kind(what, spec, source)
    name = take_name(source)
    losses = [*unconverted(source), *missing_image(spec, "the configuration")]
    return ForeignTask(name=name, spec=spec, losses=losses, kind=kind)


def _read_kind(what: str, spec: Plain, source: Source) -> Kind | None:
    lines = [str(line) for line in take_all(source, "commands") or ()]
    if what == _ENVIRONMENT:
        init = [str(line) for line in take_all(source, "init") or ()]
        spec.update(shell("\n".join([*init, _IDLE])))
        take_ports(spec, source, "ports")
        return WORKSPACE
    if what == _SERVICE:
        if lines:
            spec.update(shell("\n".join(lines)))
        _read_service(spec, source)
        return INFERENCE
    take_ports(spec, source, "ports")
    nodes = source.peek("nodes")
    is_spread = isinstance(nodes, int) and nodes > 1
    if isinstance(nodes, int):
        source.take("nodes")
    if lines:
        script = "\n".join(lines)
        spec.update(shell(with_variables(script, _node_variables(spec)) if is_spread else script))
    if is_spread and isinstance(nodes, int):
        if any("DSTACK_NODES_IPS" in line for line in lines):
            source.losses.append(Loss(path="commands", reason="DSTACK_NODES_IPS is the address of the first node only"))
        return run_on_nodes(spec, nodes)
    return None


def _node_variables(spec: Plain) -> dict[str, str]:
    """What dstack tells the nodes of a task, from what PyTorch's trainings tell their pods."""
    gpus = spec.get("compute", {}).get("gpuDevicesRequest", 0)
    return {
        "DSTACK_NODE_RANK": "$RANK",
        "DSTACK_NODES_NUM": "$WORLD_SIZE",
        "DSTACK_MASTER_NODE_IP": "$MASTER_ADDR",
        "DSTACK_NODES_IPS": "$MASTER_ADDR",
        "DSTACK_GPUS_PER_NODE": str(gpus),
        "DSTACK_GPUS_NUM": f"$((WORLD_SIZE * {gpus}))",
    }


def _read_gpus(spec: Plain, source: Source) -> None:
    gpu = take_all(source, "resources.gpu")
    if isinstance(gpu, dict):
        given = gpu.get("count", 1)
        ask_for_gpus(spec, source, "resources.gpu.name", {str(gpu.get("name", "")): given})
        source.losses += [
            Loss(path=f"resources.gpu.{name}", reason="is chosen by node pools", value=value)
            for name, value in gpu.items()
            if name not in ("count", "name")
        ]
    elif gpu is not None:
        ask_for_gpus(spec, source, "resources.gpu", gpu)


def _read_service(spec: Plain, source: Source) -> None:
    port = port_in(source.peek("port"))
    is_public = source.take("auth") is False
    if port is not None:
        source.take("port")
        spec["servingPort"] = {
            "container": port,
            "protocol": "http",
            "authorizationType": "public" if is_public else "authenticatedUsers",
        }
    scaling: Plain = {}
    replicas = span_of(take_all(source, "replicas") or 1)
    if replicas is not None:
        scaling = {"minReplicas": replicas[0], "maxReplicas": replicas[1]}
    metric, target = source.peek("scaling.metric"), source.peek("scaling.target")
    if metric == "rps" and isinstance(target, int | float):
        scaling |= {"metric": "throughput", "metricThreshold": int(target)}
        for name in ("scaling.metric", "scaling.target"):
            source.take(name)
    delay: Any = source.peek("scaling.scale_down_delay")
    if isinstance(delay, int):
        scaling["scaleDownDelaySeconds"] = source.take("scaling.scale_down_delay")
    spec["autoscaling"] = scaling
