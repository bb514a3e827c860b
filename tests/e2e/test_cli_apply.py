"""`apply`, `diff` and `delete` of files against a running server: what files say comes about, and once only."""

from pathlib import Path

import pytest

from tests.e2e.server import Server, until
from tests.unit.cli.calling import Called, call

TEXT = """apiVersion: run.ai/v2alpha1
kind: TrainingWorkload
metadata: {name: base, namespace: runai-default}
spec:
  usage: Template
  image: {value: "python:3"}
  environment: {items: {A: {value: base}, B: {value: base}}}
---
apiVersion: run.ai/v2alpha1
kind: TrainingWorkload
metadata: {name: hi, namespace: runai-default}
spec:
  baseWorkload: base
  name: {value: NAME}
  command: {value: sh -c}
  arguments: {value: "'echo $A-$B; sleep 60'"}
  environment: {items: {A: {value: own}}}
  active: {value: ACTIVE}
"""


@pytest.fixture
def fairlead(server: Server, tmp_path: Path):
    def run(*words: str, stdin: str = "") -> Called:
        return call(*words, "--data-dir", str(server.data_dir), home=tmp_path, stdin=stdin)

    return run


def written(folder: Path, name: str, active: str = "true", command: str = "sh -c") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(TEXT.replace("NAME", name).replace("ACTIVE", active).replace("sh -c", command))
    return str(path)


def found(server: Server, name: str) -> dict[str, str]:
    answer = server.call("GET", f"/api/v1/workloads?filterBy=name=={name}")
    return answer.json["workloads"][0] if answer.json["workloads"] else {}


def test_apply_again_suspend_resume_and_delete(server: Server, fairlead, tmp_path: Path) -> None:
    file = written(tmp_path, "again")
    assert fairlead("apply", "-f", file, "--dry-run").out == "again: would be submitted\n"
    assert not found(server, "again")
    assert fairlead("apply", "-f", file).out == "again: submitted\n"
    workload_id = found(server, "again")["id"]
    server.until_phase(workload_id, "Running")
    until(lambda: "own-base" in server.logs(workload_id), "the output")
    assert fairlead("apply", "-f", file).out == "again: unchanged\n"
    assert fairlead("diff", "-f", file).out == ""
    assert fairlead("apply", "-f", written(tmp_path, "again", "false")).out == "again: suspended\n"
    server.until_phase(workload_id, "Stopped")
    assert fairlead("apply", "-f", written(tmp_path, "again")).out == "again: resumed\n"
    server.until_phase(workload_id, "Running")
    assert fairlead("delete", "-f", file).out == "again: deleted\n"
    assert fairlead("delete", "-f", file).out == "again: not there\n"


def test_a_workload_of_the_server_in_every_dialect(server: Server, fairlead, tmp_path: Path) -> None:
    fairlead("apply", "-f", written(tmp_path, "shown"))
    as_yaml = fairlead("convert", "--workload", "shown", "--to", "yaml").out
    assert "namespace: runai-default" in as_yaml
    assert fairlead("apply", "-f", "-", stdin=as_yaml).out == "shown: unchanged\n"
    as_command = fairlead("convert", "--workload", "shown", "--to", "flags").out
    assert as_command.startswith("fairlead training submit shown -p default")
    assert '"image": "python:3"' in fairlead("convert", "--workload", "shown", "--to", "rest").out
    fairlead("delete", "-f", written(tmp_path, "shown"))


def test_what_may_not_change_is_named_and_others_go_on(server: Server, fairlead, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    fairlead("apply", "-f", written(folder, "keeps"))
    changed = written(folder, "keeps", command="sh -x -c")
    written(folder, "later")
    differs = fairlead("diff", "-f", changed)
    assert differs.code == 1
    assert "+    value: sh -x -c" in differs.out
    applied = fairlead("apply", "-f", str(folder))
    assert applied.code == 1
    assert "these members differ: command" in applied.err
    assert applied.out == "later: submitted\n"
    assert fairlead("delete", "-f", str(folder)).code == 0


def test_nothing_is_sent_when_one_document_is_wrong(server: Server, fairlead, tmp_path: Path) -> None:
    text = Path(written(tmp_path, "wrong")).read_text()
    broken = f"{text}---\n{text.split('---')[1].replace('command', 'comand').replace('wrong', 'other')}"
    answer = fairlead("apply", "-f", "-", stdin=broken)
    assert answer.code == 1
    assert "did you mean command?" in answer.err
    assert not found(server, "wrong")


def test_a_prefix_is_submitted_once(server: Server, fairlead, tmp_path: Path) -> None:
    text = Path(written(tmp_path, "pre")).read_text().replace("name: {value: pre}", "namePrefix: {value: pre}")
    first = fairlead("apply", "-f", "-", stdin=text)
    name = first.out.split(":")[0]
    assert name.startswith("pre-")
    assert fairlead("apply", "-f", "-", stdin=text).out == f"{name}: unchanged\n"
    assert fairlead("delete", "-f", "-", stdin=text).out == f"{name}: deleted\n"
