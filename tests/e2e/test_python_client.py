"""The Python client as its page shows it, in a notebook, with asyncio, and as type checkers see it."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import AsyncClient, Client, JobFailed, NameNotFound, ServerError, TimedOut, Unreachable, specs
from fairlead.client.access.discovery import ServerAccess, Surroundings, find_server
from tests.e2e.cli_calls import Caller, surroundings
from tests.e2e.server import Server

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def access(server: Server) -> ServerAccess:
    return find_server(Surroundings(surroundings(server.data_dir), str(server.data_dir)))


@pytest.fixture
def client(server: Server):
    with Client(access(server)) as client:
        yield client


def run_python(server: Server, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=surroundings(server.data_dir, **environ),
        cwd=server.data_dir.parent,
        check=False,
    )


def test_the_page(server: Server, tmp_path: Path) -> None:
    """All of its blocks in one program, in the environment of a user."""
    script = tmp_path / "page.py"
    script.write_text("\n".join(BLOCKS))
    done = run_python(server, str(script))
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert shown[0] == "Completed loss 0.25"
    assert [line for line in shown if line.startswith("step")] == ["step 1", "step 2", "step 3"]
    assert any(line.startswith("counts is Failed.") and line.endswith(" 3") for line in shown)
    assert "3 pods" in shown
    assert any("spec.parallelism: " in line for line in shown)
    assert any("spec.image: " in line for line in shown)
    assert "['0', '1', '2', '3', '4']" in shown
    assert shown[-1] == "default default"


def test_no_server_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="fairlead server start"):
        find_server(Surroundings(surroundings(tmp_path / "none"), str(tmp_path)))


def test_it_finds_what_the_command_line_finds(server: Server) -> None:
    """By the variable, by the configuration, by the data folder; with its project."""
    fairlead = Caller(server.data_dir)
    fairlead.ok("config", "set", "url", "http://127.0.0.1:1")
    fairlead.ok("config", "set", "project", "default")
    configured = access(server)
    assert (configured.url, configured.project) == ("http://127.0.0.1:1", "default")
    given = find_server(Surroundings(surroundings(server.data_dir, FAIRLEAD_URL=server.url), "/"))
    assert given.url == server.url
    assert given.credentials is not None
    fairlead.ok("config", "unset", "url")
    assert access(server).url == server.url


def test_names_and_errors(client: Client) -> None:
    client.run(["true"], name="named").wait(timeout=180)
    with pytest.raises(NameNotFound, match="Did you mean named"):
        client.job("namd")
    with pytest.raises(NameNotFound, match="There is no project 'nowhere'"):
        client.run(["true"], project="nowhere")
    assert client.project("1")["name"] == "default"
    with pytest.raises(ServerError) as refused:
        client.trainings.submit({"name": "x", "spec": {"parallelism": "many"}})
    assert all(f"{issue.field}: {issue.details}" in str(refused.value) for issue in refused.value.issues)
    assert len(refused.value.issues) > 1
    with pytest.raises(ValueError, match="the command is empty"):
        client.run([])
    with pytest.raises(ValueError, match="gpu must be 0 or more, not -1"):
        client.run(["true"], gpu=-1)


def test_life_of_a_job(client: Client) -> None:
    job = client.run(["sh", "-c", "echo $GREETING; sleep 60"], name="life", env={"GREETING": "hello"}, gpu=0)
    with pytest.raises(TimedOut, match="life is "):
        job.wait(timeout=0.2)
    job.wait({"Running"}, timeout=60)
    lines = job.follow()
    assert next(lines) == "hello"
    lines.close()
    job.suspend().wait({"Stopped"}, timeout=60)
    assert "life" in repr(job)
    assert "Stopped" in job._repr_html_()
    job.delete()
    assert job.wait(timeout=180).has_ended


def test_a_command_gets_the_environment_of_its_caller(server: Server) -> None:
    """On a server of one's own; the server shows only the names."""
    script = (
        "import fairlead; job = fairlead.Client().run(['sh', '-c', 'echo $TRIED']); print(job.wait().logs(), job.id)"
    )
    done = run_python(server, "-c", script, TRIED="taken along")
    assert done.stdout.startswith("taken along\n"), done
    with server.client() as client:
        taken = client.caller_environment(done.stdout.split()[-1])
    assert taken is not None
    assert "TRIED" in str(taken)
    assert "taken along" not in str(taken)


def test_a_typed_spec_is_the_request(client: Client) -> None:
    spec = specs.DistributedSpec(
        image="fairlead.local/host",
        command="true",
        num_workers=1,
        master_spec_same_as_worker=False,
        master_spec=specs.RunFields(image="fairlead.local/host", command="true"),
    )
    request = spec.as_request()
    assert request["spec"] == {"image": "fairlead.local/host", "command": "true", "numWorkers": 1}
    assert request["masterSpecSameAsWorker"] is False
    job = client.submit(spec)
    assert job.type == "Distributed"
    assert job.wait(timeout=180, check=True).phase == "Completed"


def test_many_tasks_share_a_client(server: Server) -> None:
    async def run() -> list[str]:
        async with AsyncClient(access(server)) as client:
            jobs = await asyncio.gather(*(client.run(["echo", f"n{number}"]) for number in range(12)))
            done = await asyncio.gather(*(job.wait(timeout=180, check=True) for job in jobs))
            with pytest.raises(JobFailed) as failed:
                await (await client.run(["sh", "-c", "exit 4"])).wait(timeout=180, check=True)
            assert failed.value.exit_code == 4
            return [(await job.logs()).strip() for job in done]

    assert asyncio.run(run(), debug=True) == [f"n{number}" for number in range(12)]


NOTEBOOK = """
import json
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
with capture_output() as shown:
    shell.run_cell(
        "import fairlead; client = fairlead.Client(); job = client.run(['sh', '-c', 'sleep 0.3'], name='cell')\\n"
        "jobs = client.jobs(limit=1); jobs.show(timeout=60)"
    ).raise_error()
print(json.dumps([one.data.get("text/html", "") for one in shown.outputs]))
"""


def test_a_table_in_a_notebook_changes_in_place(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "cell.py"
    script.write_text(NOTEBOOK)
    done = run_python(server, str(script), IPYTHONDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout.splitlines()[-1])
    assert len(tables) > 1
    assert all(table.startswith("<table><thead>") and "cell" in table for table in tables)
    assert "Completed" in tables[-1]
    assert "Completed" not in tables[0]


WRONG = {
    'specs.TrainingSpec(imagine="x")': "imagine",
    'specs.TrainingSpec(image="x", restart_policy="Sometimes")': "restart_policy",
    'fairlead.Client().run(["x"], gpu="two")': "gpu",
    'fairlead.Client().job("x").wait().phase + 1': "Unsupported operand",
    'fairlead.AsyncClient().run(["x"]).wait()': "wait",
}


def test_type_checkers_see_specs_and_jobs(tmp_path: Path) -> None:
    script = tmp_path / "typed.py"
    script.write_text("import fairlead\nfrom fairlead import specs\n" + "\n".join([*WRONG, *BLOCKS[:1], *BLOCKS[4:5]]))
    cache = Path(__file__).parents[2] / ".mypy_cache"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": ""},
        cwd=tmp_path,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    for number, (line, want) in enumerate(WRONG.items(), 3):
        assert [error for error in errors if f"typed.py:{number}:" in error and want in error], (line, done.stdout)
    assert len(errors) == len(WRONG), done.stdout
