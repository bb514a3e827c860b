"""From flags to a spec: every form that a flag of the generated tables can have."""

from typing import Any, cast

import pytest

from fairlead.cli.flags import UsageError, parse
from fairlead.cli.workloads.spec_flags import apply_flags, as_flag
from fairlead.formats.flags.entry import FlagEntry

_ENTRIES: list[dict[str, Any]] = [
    {"flag": "--image", "short": "-i", "form": "value", "type": "string", "path": "image"},
    {"flag": "--cpu", "form": "value", "type": "number", "path": "compute.cpuCoreRequest"},
    {"flag": "--policy", "form": "value", "type": "string", "path": "policy", "choices": ["Always", "Never"]},
    {"flag": "--shm", "form": "switch", "path": "compute.largeShmRequest"},
    {"flag": "--never", "form": "switch", "path": "policy", "constant": "Never"},
    {"flag": "--grace", "form": "duration", "path": "graceSeconds"},
    {"flag": "--pools", "form": "list", "type": "string", "path": "nodePools", "repeatable": True},
    {"flag": "--groups", "form": "list", "type": "integer", "path": "security.groups", "repeatable": True},
    {
        "flag": "--env",
        "form": "pair",
        "path": "variables",
        "pair": ["name", "value"],
        "pairTypes": ["string", "string"],
        "repeatable": True,
    },
    {
        "flag": "--secret",
        "form": "pair",
        "path": "variables",
        "repeatable": True,
        "pair": ["name", "secret.name", "secret.key"],
        "pairTypes": ["string", "string", "string"],
        "separator": ",key=",
    },
    {
        "flag": "--serving",
        "form": "object",
        "path": "serving",
        "parts": [
            {"name": "container", "path": "port", "type": "integer"},
            {"name": "users", "path": "access.users", "type": "string", "list": True},
            {"name": "open", "path": "open", "type": "boolean"},
        ],
    },
    {
        "flag": "--affinity",
        "form": "item",
        "path": "terms",
        "repeatable": True,
        "wrap": "matchExpressions",
        "parts": [
            {"name": "key", "path": "key", "type": "string"},
            {"name": "operator", "path": "operator", "type": "string", "choices": ["In", "Exists"]},
            {"name": "values", "path": "values", "type": "string", "list": True},
        ],
    },
    {
        "flag": "--claim",
        "form": "item",
        "path": "storage.pvc",
        "repeatable": True,
        "preset": {"existingPvc": True},
        "parts": [
            {"name": "claimname", "path": "claimName", "type": "string"},
            {"name": "size", "path": "claimInfo.size", "type": "string"},
            {"name": "port", "path": "port", "type": "integer"},
            {"name": "readwrite", "path": "readOnly", "type": "boolean", "constant": False},
            {"name": "attributes", "path": "added", "type": "string", "list": True, "pair": ["key", "value"]},
        ],
    },
]
TABLE = cast(list[FlagEntry], [{"type": "string", "repeatable": False, "help": "", **entry} for entry in _ENTRIES])


def spec_of(*arguments: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    apply_flags(TABLE, parse(arguments, [as_flag(entry) for entry in TABLE]).values, spec)
    return spec


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["-i", "x:1"], {"image": "x:1"}, id="value"),
        pytest.param(["--cpu", "0.5"], {"compute": {"cpuCoreRequest": 0.5}}, id="number"),
        pytest.param(["--cpu", "2"], {"compute": {"cpuCoreRequest": 2}}, id="whole number"),
        pytest.param(["--policy", "never"], {"policy": "Never"}, id="choice"),
        pytest.param(["--shm"], {"compute": {"largeShmRequest": True}}, id="switch"),
        pytest.param(["--shm=false"], {"compute": {"largeShmRequest": False}}, id="switch turned off"),
        pytest.param(["--never"], {"policy": "Never"}, id="switch that stands for a value"),
        pytest.param(["--never", "--policy", "Always"], {"policy": "Always"}, id="a value beside such a switch"),
        pytest.param(["--grace", "2m"], {"graceSeconds": 120}, id="duration"),
        pytest.param(["--pools", "a,b", "--pools", "c"], {"nodePools": ["a", "b", "c"]}, id="list"),
        pytest.param(["--groups", "1,2"], {"security": {"groups": [1, 2]}}, id="list of numbers"),
        pytest.param(["--env", "A=b=c"], {"variables": [{"name": "A", "value": "b=c"}]}, id="pair"),
        pytest.param(["--serving", "8000"], {"serving": {"port": 8000}}, id="object by its first part"),
        pytest.param(
            ["--serving", "8000,users=a:b,open"],
            {"serving": {"port": 8000, "access": {"users": ["a", "b"]}, "open": True}},
            id="object",
        ),
        pytest.param(["--serving", "open"], {"serving": {"open": True}}, id="object by a switch"),
        pytest.param(["--grace", "0s"], {}, id="no duration is not sent"),
        pytest.param(
            ["--secret", "A=b,key=c"],
            {"variables": [{"name": "A", "secret": {"name": "b", "key": "c"}}]},
            id="pair of three",
        ),
        pytest.param(
            ["--affinity", "key=a,operator=in,values=x:y;key=b,operator=exists"],
            {
                "terms": [
                    {
                        "matchExpressions": [
                            {"key": "a", "operator": "In", "values": ["x", "y"]},
                            {"key": "b", "operator": "Exists"},
                        ]
                    }
                ]
            },
            id="item that is a list",
        ),
        pytest.param(
            ["--claim", "attributes=a=1:b=2"],
            {
                "storage": {
                    "pvc": [{"existingPvc": True, "added": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]}]
                }
            },
            id="part that is a list of pairs",
        ),
        pytest.param(
            ["--claim", "claimname=c,size=1Gi,readwrite"],
            {
                "storage": {
                    "pvc": [{"existingPvc": True, "claimName": "c", "claimInfo": {"size": "1Gi"}, "readOnly": False}]
                }
            },
            id="item",
        ),
    ],
)
def test_apply_flags(words: list[str], want: dict[str, Any]) -> None:
    assert spec_of(*words) == want


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["--env", "A"], "--env must be NAME=VALUE, not 'A'.", id="no pair"),
        pytest.param(
            ["--claim", "claimnane=x"],
            "--claim has no part 'claimnane'; its parts are claimname, size, port, readwrite, attributes. "
            "Did you mean claimname?",
            id="unknown part",
        ),
        pytest.param(["--claim", "size"], "--claim size needs a value: size=…", id="part without value"),
        pytest.param(["--claim", "port=x"], "--claim port must be a whole number, not 'x'.", id="part of another type"),
        pytest.param(
            ["--serving", "http"], "--serving container must be a whole number, not 'http'.", id="no such first part"
        ),
        pytest.param(["--grace", "x"], "--grace must be a duration such as 90s, 5m or 1h30m, not 'x'.", id="no time"),
    ],
)
def test_wrong_values_are_explained(words: list[str], want: str) -> None:
    with pytest.raises(UsageError) as raised:
        spec_of(*words)
    assert str(raised.value) == want


def test_flags_go_over_what_a_file_has() -> None:
    spec: dict[str, Any] = {"image": "old", "compute": {"cpuCoreRequest": 1, "cpuMemoryRequest": "1Gi"}}
    apply_flags(TABLE, {"image": "new", "cpu": 4.0}, spec)
    assert spec == {"image": "new", "compute": {"cpuCoreRequest": 4, "cpuMemoryRequest": "1Gi"}}
