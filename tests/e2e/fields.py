"""What tests of single fields share: a training that looks around from inside, and what became of it."""

import json
from typing import Any

from tests.e2e.server import Server

ENDS = ("Completed", "Failed")


def look(server: Server, name: str, script: str, **spec: Any) -> str:
    """What a shell script inside a training with these fields wrote; it must end well."""
    workload = server.run(name, "/bin/sh", "-c " + json.dumps(script), **spec)
    ended = server.until_phase(workload, *ENDS)
    words = server.logs(workload) if ended["phase"] == "Completed" else ""
    assert ended["phase"] == "Completed", (ended.get("phaseMessage"), ended.get("conditions"))
    return words.strip()


def refuse(server: Server, name: str, **spec: Any) -> str:
    """Why a training with these fields is refused, or fails before its start; it never ran."""
    answer = server.submit(name, "/bin/true", **spec)
    if answer.status == 400:
        return str(answer.json["details"])
    workload = answer.json["workloadId"]
    ended = server.until_phase(workload, "Failed")
    assert "Running" not in server.history(workload)
    return str(ended["phaseMessage"])


def conditions(server: Server, workload_id: str, kind: str) -> dict[str, str]:
    """The conditions of that type, as field and words."""
    found = server.workload(workload_id).get("conditions") or []
    return {each["reason"]: each["message"] for each in found if each["type"] == kind}
