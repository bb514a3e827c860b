"""The end of an object of any kind, as controllers write it into its status."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client.objects import CustomObject
from fairlead.engines.kubernetes.observe.any_object import read_runner

ENDS: list[tuple[str, Any, list[str]]] = [
    ("nothing", {}, []),
    ("no object", ["x"], []),
    ("JobSet", {"conditions": [{"type": "Completed", "status": "True"}]}, ["Complete"]),
    ("a condition that is not true", {"conditions": [{"type": "Completed", "status": "False"}]}, []),
    ("RayJob", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, ["Complete"]),
    ("failed RayJob", {"jobStatus": "FAILED", "jobDeploymentStatus": "Complete"}, ["Failed"]),
    ("Volcano", {"state": {"phase": "Completed"}, "succeeded": 1}, ["Complete"]),
    ("Spark", {"applicationState": {"state": "FAILED"}}, ["Failed"]),
    ("Argo", {"phase": "Error", "message": "no"}, ["Failed"]),
    ("running", {"phase": "Running"}, []),
    ("conditions of another shape", {"conditions": {"Ready": True}, "phase": 3}, []),
]


@pytest.mark.parametrize(("status", "want"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_the_end(status: Any, want: list[str]) -> None:
    runner = read_runner(CustomObject(status=msgspec.Raw(msgspec.json.encode(status))))
    assert [one.type for one in runner.status.conditions] == want


def test_why_it_failed() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "Crash", "message": "out of luck"}
    [end] = read_runner(
        CustomObject(status=msgspec.Raw(msgspec.json.encode({"conditions": [failed]})))
    ).status.conditions
    assert (end.reason, end.message) == ("Crash", "out of luck")
