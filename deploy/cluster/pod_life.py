"""What a kubelet would write into the status of pods that nobody runs. Pure but for the clock; used by `stand_in.py`.

A pod runs until it is deleted, unless its annotations say when and how it ends.
"""

import datetime
import hashlib
from typing import Any

Object = dict[str, Any]
#: On a pod: ends so many seconds after it started, with this exit code (0 if it does not say).
SECONDS, CODE = "cluster.fairlead/run-seconds", "cluster.fairlead/exit-code"
STOPPED_CODE = 143


def timestamp(micro: bool = False) -> str:
    now = datetime.datetime.now(datetime.UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def fake_address(name: str) -> str:
    """Of the range for documentation and tests (198.18.0.0/15): no traffic goes there."""
    digest = hashlib.sha256(name.encode()).digest()
    return f"198.{18 + digest[0] % 2}.{digest[1]}.{1 + digest[2] % 254}"


def ends_after(pod: Object) -> float | None:
    said = pod["metadata"].get("annotations", {}).get(SECONDS)
    return None if said is None else float(said)


def exit_code(pod: Object) -> int:
    return int(pod["metadata"].get("annotations", {}).get(CODE, "0"))


def render_running(pod: Object, restarts: int = 0) -> Object:
    now = timestamp()
    address = fake_address(pod["metadata"]["uid"])
    return {
        "phase": "Running",
        "startTime": pod["status"].get("startTime", now),
        "hostIP": fake_address(pod["spec"]["nodeName"]),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": render_conditions("True", now),
        "initContainerStatuses": [
            render_container(one, {"terminated": render_terminated(0, now)}, False)
            for one in pod["spec"].get("initContainers", ())
        ],
        "containerStatuses": [
            render_container(one, {"running": {"startedAt": now}}, True, restarts) for one in pod["spec"]["containers"]
        ],
    }


def render_ended(pod: Object) -> Object:
    """By itself; a pod that is to be restarted runs on, with one restart more."""
    code, policy = exit_code(pod), pod["spec"].get("restartPolicy", "Always")
    if policy == "Always" or (policy == "OnFailure" and code):
        return render_restarted(pod, code)
    return render_final(pod, code)


def render_stopped(pod: Object) -> Object:
    """By deletion."""
    return render_final(pod, STOPPED_CODE)


def render_restarted(pod: Object, code: int) -> Object:
    before = {one["name"]: one for one in pod["status"].get("containerStatuses", ())}
    status = render_running(pod)
    for one in status["containerStatuses"]:
        one["restartCount"] = before.get(one["name"], {}).get("restartCount", 0) + 1
        one["lastState"] = {"terminated": render_terminated(code, timestamp())}
    return status


def render_final(pod: Object, code: int) -> Object:
    now = timestamp()
    restarts = {one["name"]: one.get("restartCount", 0) for one in pod["status"].get("containerStatuses", ())}
    return {
        "phase": "Failed" if code else "Succeeded",
        "conditions": render_conditions("False", now, "PodCompleted" if code == 0 else "PodFailed"),
        "containerStatuses": [
            render_container(one, {"terminated": render_terminated(code, now)}, False, restarts.get(one["name"], 0))
            for one in pod["spec"]["containers"]
        ],
    }


def render_conditions(ready: str, now: str, reason: str = "") -> list[Object]:
    said = {"Initialized": "True", "ContainersReady": ready, "Ready": ready}
    return [
        {"type": kind, "status": status, "lastTransitionTime": now, **({"reason": reason} if ready == "False" else {})}
        for kind, status in said.items()
    ]


def render_container(container: Object, state: Object, is_running: bool, restarts: int = 0) -> Object:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": is_running,
        "started": is_running,
        "restartCount": restarts,
        "state": state,
    }


def render_terminated(code: int, now: str) -> Object:
    reason = "Error" if code else "Completed"
    return {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}
