"""Files of Slurm, SkyPilot and dstack as people write them: what each becomes, and what is said to be lost.

Each file of tests/golden/foreign has a `.want.yaml` beside it.
"""

import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml

from fairlead.formats.convert.dialects import detect, read_any, render
from fairlead.formats.intermediate import IntermediateWorkload
from fairlead.kinds.kind import spec_violations
from fairlead.model.spec.rules import SubmissionLimits

FOLDER = Path(__file__).parents[2] / "golden" / "foreign"
FILES = sorted(path for path in FOLDER.iterdir() if ".want." not in path.name)


def read(name: str) -> IntermediateWorkload:
    text = (FOLDER / name).read_text()
    [workload] = read_any(text, detect(text))
    return workload


def test_there_are_twenty() -> None:
    assert len(FILES) == 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_a_file_becomes(path: Path) -> None:
    found = read(path.name)
    want = yaml.safe_load((FOLDER / f"{path.name}.want.yaml").read_text())
    assert (found.kind.title, found.name) == (want["kind"], want["name"])
    assert found.spec == want["spec"]
    assert {loss.path: loss.reason for loss in found.losses} == want["lost"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_server_would_take_it(path: Path) -> None:
    """With an image, which Slurm's scripts do not name."""
    found = read(path.name)
    spec = msgspec.convert({"image": "python:3.12", **found.spec}, found.kind.spec)
    assert spec_violations(found.kind, spec, "spec", SubmissionLimits()) == []
    request = render(found, "rest").plain
    assert isinstance(request, dict)
    assert request["spec"]["command"] == "bash"


def run_script(name: str, script: str, *more: str, **environ: str) -> list[str]:
    """What the script of a file prints, with another program in the place of what it would run."""
    arguments = shlex.split(read(name).spec["args"])
    done = subprocess.run(
        ["bash", "-c", arguments[1].replace("python", script).replace("torchrun", script)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "RUNAI_JOB_UUID": "u-1", **environ},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def test_srun_starts_the_tasks_of_each_node() -> None:
    show = "bash -c 'echo $SLURM_PROCID/$SLURM_LOCALID $0 $*'"
    lines = run_script("task-per-gpu.sbatch", show, RANK="1")
    assert lines == [f"{4 + task}/{task} ddp.py --world 8" for task in range(4)]


def test_srun_starts_the_requested_number_of_tasks() -> None:
    lines = run_script("steps.sbatch", "bash -c 'echo $SLURM_PROCID $0'")
    assert lines == ["0 prepare.py", "0 train.py", "1 train.py", "2 train.py", "3 train.py"]


def test_a_script_finds_its_first_node() -> None:
    [line] = run_script("torchrun-nodes.sbatch", "echo", RANK="3", WORLD_SIZE="4", MASTER_ADDR="first")
    assert "--nnodes 4 --nproc_per_node 8 --rdzv_id u-1" in line
    assert "--rdzv_endpoint first:29500" in line


def test_a_task_of_skypilot_knows_its_node() -> None:
    text = read("two-nodes.sky.yaml").spec["args"].replace("pip install", "true")
    script = shlex.split(text)[1].replace("torchrun", "echo")
    variables = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "first", "PATH": "/usr/bin:/bin"}
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=variables, check=True).stdout
    assert shown == "--nnodes 2 --node_rank 1 --nproc_per_node 8 --master_addr first train.py\n"


def test_srun_fails_if_a_task_fails() -> None:
    script = shlex.split(read("steps.sbatch").spec["args"])[1].replace("python", "false")
    assert subprocess.run(["bash", "-c", script], check=False).returncode == 1


def test_a_task_of_an_array_knows_its_index() -> None:
    text = "#!/bin/bash\n#SBATCH --array=5,7\necho $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT\n"
    [found] = read_any(text, detect(text))
    script = shlex.split(found.spec["args"])[1]
    shown = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={"FAIRLEAD_ARRAY_INDEX": "7"}, check=True
    ).stdout
    assert shown == "7 of 2\n"


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("afterok:prep", "prep"),
        ("afterok:prep:fetch,afterany:clean-2", "prep,fetch,any:clean-2"),
        ("afterok:1234", None),
        ("afterok:prep?afterok:fetch", None),
        ("afternotok:prep", None),
        ("singleton", None),
    ],
)
def test_dependencies_of_slurm_that_name_workloads(value: str, want: str | None) -> None:
    text = f"#!/bin/bash\n#SBATCH --dependency={value}\ntrue\n"
    [found] = read_any(text, detect(text))
    assert found.spec.get("annotations") == ([{"name": "fairlead/after", "value": want}] if want else None)
    assert ("#SBATCH --dependency" in {loss.path for loss in found.losses}) is (want is None)
