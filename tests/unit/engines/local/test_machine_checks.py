"""What `doctor` concludes from the facts of a machine."""

import pytest

from fairlead.engines.local import machine_checks as checks
from fairlead.model.finding import Finding
from fairlead.model.records.organization import GpuDevice

A100 = GpuDevice(0, "GPU-1", "NVIDIA A100", 81920)
GIB = 1 << 30


@pytest.mark.parametrize(
    ("finding", "want_state", "want_text"),
    [
        pytest.param(checks.judge_kernel("6.1.0-13-amd64"), "ok", "Linux 6.1.0-13-amd64", id="kernel"),
        pytest.param(checks.judge_kernel("5.10.0"), "missing", "Linux 5.10.0 is too old", id="an old kernel"),
        pytest.param(checks.judge_kernel("5.12.1"), "ok", "Linux 5.12.1", id="the oldest kernel"),
        pytest.param(
            checks.judge_isolation("", has_seccomp=True, is_personal=False), "ok", "namespaces and", id="isolation"
        ),
        pytest.param(
            checks.judge_isolation("Operation not permitted", has_seccomp=True, is_personal=False),
            "missing",
            "cannot have namespaces: Operation not permitted",
            id="a shared server without namespaces",
        ),
        pytest.param(
            checks.judge_isolation("Operation not permitted", has_seccomp=True, is_personal=True),
            "note",
            "cannot have namespaces",
            id="a personal server without namespaces",
        ),
        pytest.param(
            checks.judge_isolation("", has_seccomp=False, is_personal=False), "note", "no seccomp", id="no seccomp"
        ),
        pytest.param(
            checks.judge_limits(2, ("cpu", "memory", "pids"), is_root=True), "ok", "version 2", id="all controllers"
        ),
        pytest.param(
            checks.judge_limits(2, ("cpu", "pids"), is_root=False), "note", "limits of memory", id="no memory limits"
        ),
        pytest.param(
            checks.judge_limits(0, (), is_root=True), "note", "limits of cpu, memory, pids", id="no control groups"
        ),
        pytest.param(checks.judge_gpus((A100, A100), 2), "ok", "2 × NVIDIA A100", id="GPUs"),
        pytest.param(checks.judge_gpus((), 2), "missing", "2 NVIDIA devices, but the driver", id="no driver"),
        pytest.param(checks.judge_gpus((), 0), "note", "this machine has none", id="no GPUs"),
        pytest.param(
            checks.judge_runtimes({"podman": "podman version 4.3.1"}), "ok", "--runtime podman", id="a runtime"
        ),
        pytest.param(checks.judge_runtimes({}), "note", "none", id="no runtime"),
        pytest.param(checks.judge_disk(50 * GIB, 100 * GIB, "/data"), "ok", "50.0 of 100.0 GiB", id="room"),
        pytest.param(checks.judge_disk(4 * GIB, 100 * GIB, "/data"), "note", "4.0 of 100.0", id="little room"),
        pytest.param(checks.judge_disk(GIB // 2, 2 * GIB, "/data"), "missing", "0.5 of 2.0 GiB", id="no room"),
        pytest.param(checks.judge_clock(is_synchronized=True), "ok", "synchronized", id="clock"),
        pytest.param(checks.judge_clock(is_synchronized=False), "note", "time service", id="no time service"),
    ],
)
def test_findings(finding: Finding, want_state: str, want_text: str) -> None:
    assert finding.state == want_state
    assert want_text in finding.found
    assert bool(finding.advice) is (want_state != "ok")
