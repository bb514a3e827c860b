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
    def run(*arguments: str, stdin: str = "") -> Called:
        return call(*arguments, "--data-dir", str(server.data_dir), home=tmp_path, stdin=stdin)

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
    tried = fairlead("apply", "-f", file, "--dry-run").out
    assert tried == "base: template would be created\nagain: would be submitted\n"
    assert not found(server, "again")
    assert fairlead("apply", "-f", file).out == "base: template created\nagain: submitted\n"
    workload_id = found(server, "again")["id"]
    server.until_phase(workload_id, "Running")
    until(lambda: "own-base" in server.logs(workload_id), "the output")
    assert fairlead("apply", "-f", file).out == "base: template unchanged\nagain: unchanged\n"
    assert fairlead("diff", "-f", file).out == ""
    assert "again: suspended\n" in fairlead("apply", "-f", written(tmp_path, "again", "false")).out
    server.until_phase(workload_id, "Stopped")
    assert "again: resumed\n" in fairlead("apply", "-f", written(tmp_path, "again")).out
    server.until_phase(workload_id, "Running")
    assert fairlead("delete", "-f", file).out == "again: deleted\nbase: template deleted\n"
    assert fairlead("delete", "-f", file).out == "again: not found\nbase: template not found\n"


def test_what_is_not_active_does_not_start(server: Server, fairlead, tmp_path: Path) -> None:
    file = written(tmp_path, "asleep", "false")
    assert "asleep: submitted and suspended\n" in fairlead("apply", "-f", file).out
    workload_id = found(server, "asleep")["id"]
    server.until_phase(workload_id, "Stopped")
    records = server.call("GET", f"/api/v1/workloads/{workload_id}/history").json["records"]
    phases = {record["spec"].get("phaseUpdate", {}).get("phase") for record in records}
    assert "Stopped" in phases
    assert not phases & {"Pending", "Initializing", "Running"}
    fairlead("delete", "-f", file)


def test_a_workload_of_the_server_in_every_dialect(server: Server, fairlead, tmp_path: Path) -> None:
    fairlead("apply", "-f", written(tmp_path, "shown"))
    as_yaml = fairlead("convert", "--workload", "shown", "--to", "yaml").out
    assert "namespace: runai-default" in as_yaml
    assert fairlead("apply", "-f", "-", stdin=as_yaml).out == "shown: unchanged\n"
    as_command = fairlead("convert", "--workload", "shown", "--to", "flags").out
    assert as_command.startswith("fairlead training submit shown -p default")
    assert '"image": "python:3"' in fairlead("convert", "--workload", "shown", "--to", "rest").out
    described = fairlead("describe", "shown", "-o", "yaml").out
    assert fairlead("apply", "-f", "-", stdin=described).out == "shown: unchanged\n"
    assert fairlead("describe", "shown", "-o", "command").out.endswith(as_command)
    assert '"image": "python:3"' in fairlead("describe", "shown", "-o", "rest").out
    fairlead("delete", "-f", written(tmp_path, "shown"))


def test_what_may_not_change_is_named_and_others_continue(server: Server, fairlead, tmp_path: Path) -> None:
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
    assert applied.out.endswith("later: submitted\n")
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
    name = first.out.splitlines()[1].split(":")[0]
    assert name.startswith("pre-")
    assert f"{name}: unchanged\n" in fairlead("apply", "-f", "-", stdin=text).out
    assert f"{name}: deleted\n" in fairlead("delete", "-f", "-", stdin=text).out


def test_templates_of_the_server_are_bases(server: Server, fairlead, tmp_path: Path) -> None:
    template, workload = Path(written(tmp_path, "based")).read_text().split("---\n")
    everybodys = template.replace("runai-default", "runai").replace("name: base", "name: all")
    own = template.replace("image", "baseWorkload: all\n  #image").replace("A: {value: base}, ", "")
    # The one that inherits stands first: what it names is stored before it.
    stored = fairlead("apply", "-f", "-", stdin=f"{own}---\n{everybodys}")
    assert stored.out == "all: template created\nbase: template created\n", stored
    listed = fairlead("template", "list", "-o", "name").out.split()
    assert {"all", "base"} <= set(listed)
    unset = workload.replace("environment: {items: {A: {value: own}}}", "environment: {items: {C: {value: own}}}")
    assert fairlead("apply", "-f", "-", stdin=unset).out == "based: submitted\n"
    server.until_phase(found(server, "based")["id"], "Running")
    until(lambda: "base-base" in server.logs(found(server, "based")["id"]), "what was inherited")
    assert fairlead("apply", "-f", "-", stdin=unset).out == "based: unchanged\n"
    assert "A: {value: base}" not in own
    fairlead("delete", "-f", "-", stdin=unset)
    missing = fairlead("apply", "-f", "-", stdin=unset.replace("baseWorkload: base", "baseWorkload: nobody"))
    assert missing.code == 1
    assert "there is no template 'nobody' in runai-default, nor in runai" in missing.err
    assert fairlead("delete", "-f", "-", stdin=f"{everybodys}---\n{own}").code == 0


def test_a_template_of_rest_is_a_base_too(server: Server, fairlead, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text('{"image": "python:3", "environmentVariables": [{"name": "A", "value": "rest"}]}')
    assert fairlead("template", "create", "resting", "-f", str(spec)).code == 0
    text = Path(written(tmp_path, "rested")).read_text().split("---\n")[1]
    text = text.replace("baseWorkload: base", "baseWorkload: resting").replace("{A: {value: own}}", "{B: {value: own}}")
    assert fairlead("apply", "-f", "-", stdin=text).out == "rested: submitted\n"
    server.until_phase(found(server, "rested")["id"], "Running")
    until(lambda: "rest-own" in server.logs(found(server, "rested")["id"]), "what both give")
    assert fairlead("apply", "-f", "-", stdin=text).out == "rested: unchanged\n"
    assert fairlead("diff", "-f", "-", stdin=text).out == ""
    fairlead("delete", "-f", "-", stdin=text)


def test_a_legacy_job_is_listed_as_a_training_with_its_origin(server: Server, fairlead, tmp_path: Path) -> None:
    text = Path(written(tmp_path, "older")).read_text().replace("kind: TrainingWorkload", "kind: RunaiJob")
    assert "older: submitted\n" in fairlead("apply", "-f", "-", stdin=text.replace("v2alpha1", "v1")).out
    assert found(server, "older")["type"] == "Training"
    assert "was written as a RunaiJob" in fairlead("describe", "older").out
    fairlead("delete", "-f", "-", stdin=text)


def test_plain_credentials_become_a_secret(server: Server, fairlead, tmp_path: Path) -> None:
    item = "{repository: 'https://example.invalid/r.git', path: /r, username: ann, password: very-secret}"
    text = Path(written(tmp_path, "opens")).read_text() + f"  gitSync: {{items: {{code: {{value: {item}}}}}}}\n"
    applied = fairlead("apply", "-f", "-", stdin=text)
    assert "opens: submitted\n" in applied.out, applied
    assert "stored in the secret opens-code" in applied.err
    assert "very-secret" not in applied.out + applied.err
    shown = fairlead("secret", "describe", "opens-code").out
    assert "User" in shown
    assert "very-secret" not in shown + fairlead("describe", "opens", "-o", "rest").out
    assert '"name": "opens-code"' in fairlead("describe", "opens", "-o", "rest").out
    assert "opens: unchanged" in fairlead("apply", "-f", "-", stdin=text).out
    fairlead("delete", "-f", "-", stdin=text)
