"""Quotas on the command line: which REST members flags become, and what is said of words that are none."""

from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.exit_codes import USAGE
from fairlead.cli.flags import UsageError
from fairlead.cli.organization.quota import apply_quotas
from fairlead.cli.terminal.amounts import amount
from fairlead.client import NameNotFound
from tests.unit.cli.calling import call

POOLS = [{"id": "1", "name": "default"}, {"id": "2", "name": "gold"}]
DEFAULT = {"nodePool": {"id": "1", "name": "default"}}


@pytest.mark.parametrize(
    ("quota", "want"),
    [
        pytest.param({"gpu": "4"}, {"gpu": {"deserved": 4}}, id="GPUs"),
        pytest.param({"gpu": "unlimited"}, {"gpu": {"deserved": -1}}, id="unlimited GPUs"),
        pytest.param({"gpu-limit": "unlimited"}, {"gpu": {"limit": None}}, id="no limit"),
        pytest.param({"cpu": "1.5"}, {"cpu": {"deserved": 1500}}, id="cores are millicores"),
        pytest.param({"memory": "64Gi"}, {"memory": {"deserved": 65536, "units": "Mib"}}, id="binary memory"),
        pytest.param({"memory": "1048576k"}, {"memory": {"deserved": 1000, "units": "Mib"}}, id="decimal memory"),
        pytest.param({"rank": "High"}, {"priority": "High"}, id="rank"),
    ],
)
def test_a_quota_flag_becomes_an_amount(quota: dict[str, str], want: dict[str, Any]) -> None:
    assert apply_quotas([{"pool": "default", **quota}], (), POOLS) == [{**DEFAULT, **want}]


def test_wishes_go_over_what_there_is() -> None:
    before = {
        **DEFAULT,
        "gpu": {"deserved": 2, "limit": 4},
        "memory": {"deserved": 2, "units": "GB"},
        "priority": "Low",
    }
    (changed,) = apply_quotas([{"pool": "default", "gpu": "3", "memory-limit": "4Gi"}], [before], POOLS)
    assert changed["gpu"] == {"deserved": 3, "limit": 4}
    assert changed["memory"] == {"deserved": pytest.approx(2e9 / 2**20), "limit": 4096, "units": "Mib"}
    assert changed["priority"] == "Low"
    assert before["gpu"] == {"deserved": 2, "limit": 4}, "what was read is not written to"


def test_a_pool_is_named_by_its_name() -> None:
    (entry,) = apply_quotas([{"pool": "gold", "gpu": "1"}], (), POOLS)
    assert entry["nodePool"] == {"id": "2", "name": "gold"}
    with pytest.raises(NameNotFound, match=r"There is no node pool 'gol'\. Did you mean gold"):
        apply_quotas([{"pool": "gol", "gpu": "1"}], (), POOLS)


@pytest.mark.parametrize(
    ("quota", "want"),
    [({"gpu": "many"}, "a number or `unlimited`"), ({"memory": "lots"}, "a quantity such as 64Gi")],
)
def test_what_is_not_an_amount_is_refused(quota: dict[str, str], want: str) -> None:
    with pytest.raises(UsageError, match=want):
        apply_quotas([{"pool": "default", **quota}], (), POOLS)


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    called = call("project", "create", "x", "--quota", "gpus=4", "--url", "http://127.0.0.1:1", home=tmp_path)
    assert called.code != 0
    wrong = call("project", "create", home=tmp_path)
    assert wrong.code == USAGE
    assert "needs NAME" in wrong.err


@pytest.mark.parametrize(
    ("value", "resource", "units", "want"),
    [
        (None, "gpu", "", "unlimited"),
        (-1.0, "gpu", "", "unlimited"),
        (1.5, "gpu", "", "1.5"),
        (2500, "cpu", "", "2.5"),
        (1024, "memory", "Mib", "1 GiB"),
        (2**30, "memory", "", "1 GiB"),
    ],
)
def test_amounts_as_they_are_shown(value: Any, resource: str, units: str, want: str) -> None:
    assert amount(value, resource, units) == want
