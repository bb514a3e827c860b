"""The exit codes of programs that no runtime could start."""

import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.failed_starts import exit_code_of

CONTAINERD = "failed to create containerd task: OCI runtime create failed: unable to start container process: "


@pytest.mark.parametrize(
    ("reason", "code", "message", "want"),
    [
        ("StartError", 128, CONTAINERD + 'exec: "x": executable file not found in $PATH: unknown', 127),
        ("StartError", 128, CONTAINERD + 'exec: "/x": stat /x: no such file or directory: unknown', 127),
        ("StartError", 128, CONTAINERD + 'exec: "/etc/passwd": permission denied: unknown', 126),
        ("ContainerCannotRun", 127, "executable file `x` not found in $PATH: No such file or directory", 127),
        ("StartError", 128, "cannot mount the volume", 128),
        ("Error", 128, 'my program said: exec: "x": not found', 128),
        ("Completed", 0, "", 0),
    ],
    ids=[
        "not-on-the-path",
        "no-file",
        "not-executable",
        "crun",
        "another-error",
        "the-programs-own-words",
        "completed",
    ],
)
def test_exit_codes_are_those_of_a_shell(reason: str, code: int, message: str, want: int) -> None:
    assert exit_code_of(objects.Terminated(reason=reason, exit_code=code, message=message)) == want
