"""`policy test` and `policy explain`, which need no server, and files that are no policies."""

from pathlib import Path

import pytest

from fairlead.cli.exit_codes import FAILED, OK, USAGE
from tests.unit.cli.calling import call

CASES = """
type: training
policies:
  - {defaults: {backoffLimit: 2}, rules: {compute: {gpuDevicesRequest: {max: 4}}}}
  - {rules: {compute: {gpuDevicesRequest: {max: 2}}}}
cases:
  - name: the widest limit holds
    spec: {compute: {gpuDevicesRequest: 3}}
    expect: {violations: [{field: compute.gpuDevicesRequest, rule: max}]}
  - {name: the default is filled in, spec: {image: x}, expect: {spec: {backoffLimit: 2}}}
"""
WRONG = """
  - {name: one too many, spec: {compute: {gpuDevicesRequest: 3}}}
  - {name: another default, spec: {}, expect: {spec: {backoffLimit: 5}}}
  - {name: no violation, spec: {}, expect: {violations: [{field: image, rule: required}]}}
"""


def test_cases_that_hold(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    called = call("policy", "test", "cases.yaml", home=tmp_path)
    assert (called.code, called.out) == (OK, "2 cases, 0 failed.\n")


def test_cases_that_fail_say_what_differs(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(CASES.rstrip() + WRONG)
    called = call("policy", "test", "cases.yaml", home=tmp_path)
    assert called.code == FAILED
    assert called.out.splitlines() == [
        "FAILED  cases.yaml: one too many",
        "        compute.gpuDevicesRequest: value must be no greater than 2, which breaks max, but no violation"
        " is expected",
        "FAILED  cases.yaml: another default",
        "        backoffLimit: expected 5, but it is 2",
        "FAILED  cases.yaml: no violation",
        "        image: expected a violation of required, but there is none",
        "5 cases, 3 failed.",
    ]


@pytest.mark.parametrize(
    ("verb", "text", "message"),
    [
        ("test", "cases: [", "is not valid YAML"),
        ("test", "type: training", "is not a file of policy cases"),
        ("test", CASES.replace("type: training", "type: job"), "type must be one of training"),
        ("apply", "type: training\nscope: tenant", "name is missing"),
        ("apply", "type: training\nname: x\nscope: everywhere", "scope must be one of tenant"),
        ("apply", "type: training\nname: x\nscope: tenant\nrule: {}", "Did you mean rules?"),
        ("apply", "- x", "must be an object"),
    ],
)
def test_files_that_are_not_understood(tmp_path: Path, verb: str, text: str, message: str) -> None:
    (tmp_path / "file.yaml").write_text(text)
    words = ("file.yaml",) if verb == "test" else ("-f", "file.yaml")
    called = call("policy", verb, *words, home=tmp_path)
    assert called.code == USAGE
    assert message in called.err


def test_which_rules_fit_a_field(tmp_path: Path) -> None:
    def explained(field: str, *more: str) -> str:
        return call("policy", "explain", field, *more, home=tmp_path).out

    assert explained("image") == "image is of type text: required, canEdit, blocked, options.\n"
    assert explained("compute").startswith("compute is a section")
    assert "canAdd, locked" in explained("ports")
    assert "integer" in explained("master.backoffLimit", "--type", "distributed")
    assert call("policy", "explain", "imag", home=tmp_path).code == USAGE
