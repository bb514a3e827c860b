"""What a training runs, and with which words, variables, terminal and labels: seen from inside."""

from pathlib import Path

from tests.e2e.fields import conditions, look
from tests.e2e.server import Server


def test_image(server: Server) -> None:
    workload = server.run("image", "/bin/true", image="python:3")
    server.until_phase(workload, "Completed")
    assert "this machine's own files" in conditions(server, workload, "NotEnforced")["image"]
    assert "personal" in conditions(server, workload, "Isolation")["None"]


def test_image_pull_policy(server: Server) -> None:
    workload = server.run("pull-policy", "/bin/true", imagePullPolicy="Always")
    server.until_phase(workload, "Completed")
    assert "no image is pulled" in conditions(server, workload, "NotEnforced")["imagePullPolicy"]


def test_command(server: Server) -> None:
    workload = server.run("command", "printf '%s|' 'two words' three")
    server.until_phase(workload, "Completed")
    assert server.logs(workload) == "two words|three|"
    body = {
        "name": "no-command",
        "projectId": "1",
        "clusterId": server.credentials["clusterId"],
        "spec": {"image": "i"},
    }
    answer = server.call("POST", "/api/v1/workloads/trainings", body)
    ended = server.until_phase(answer.json["workloadId"], "Failed")
    assert "container runtime" in ended["phaseMessage"]


def test_args(server: Server) -> None:
    workload = server.run("args", "printf '%s|'", "'one two' $(RUNAI_JOB_NAME) ${RUNAI_PROJECT}")
    server.until_phase(workload, "Completed")
    assert server.logs(workload).startswith("one two|args|")


def test_working_dir(server: Server, tmp_path: Path) -> None:
    assert look(server, "working-dir", "pwd", workingDir=str(tmp_path)) == str(tmp_path)


def test_environment_variables_name(server: Server) -> None:
    assert look(server, "variable-name", "env | grep ^MINE", environmentVariables=[{"name": "MINE", "value": "1"}])


def test_environment_variables_value(server: Server) -> None:
    variables = [{"name": "MINE", "value": "a  b"}, {"name": "NOT", "value": "x", "exclude": True}]
    assert look(server, "variable-value", 'echo "$MINE/$NOT"', environmentVariables=variables) == "a  b/"


def test_environment_variables_pod_field_ref(server: Server) -> None:
    variables = [
        {"name": "NAMESPACE", "podFieldRef": {"path": "metadata.namespace"}},
        {"name": "NODE", "podFieldRef": {"path": "spec.nodeName"}},
    ]
    namespace, node, same = look(
        server, "pod-field", 'echo "$NAMESPACE $NODE $NODE_NAME"', environmentVariables=variables
    ).split()
    assert namespace.startswith("runai-")
    assert node == same


def test_labels(server: Server) -> None:
    variables = [{"name": "TEAM", "podFieldRef": {"path": "metadata.labels['team']"}}]
    spec = {"labels": [{"name": "team", "value": "blue"}], "environmentVariables": variables}
    assert look(server, "labels", "echo $TEAM", **spec) == "blue"


def test_annotations(server: Server) -> None:
    variables = [{"name": "NOTE", "podFieldRef": {"path": "metadata.annotations['note']"}}]
    spec = {"annotations": [{"name": "note", "value": "by hand"}], "environmentVariables": variables}
    assert look(server, "annotations", "echo $NOTE", **spec) == "by hand"


def test_tty(server: Server) -> None:
    assert look(server, "tty", "tty && test -t 0 && echo terminal", tty=True, stdin=True).endswith("terminal")
    assert look(server, "no-tty", "test -t 0 || echo none") == "none"


def test_stdin(server: Server) -> None:
    assert look(server, "no-stdin", "cat; echo end") == "end"
    workload = server.run("stdin", "/bin/cat", stdin=True)
    server.until_phase(workload, "Running")
    assert server.phase(workload) == "Running"
    server.call("DELETE", f"/api/v1/workloads/trainings/{workload}")


def test_an_argument_of_a_hundred_kilobytes_is_refused_with_a_message(server: Server) -> None:
    answer = server.submit("long", "/bin/echo", "x" * 100_000)
    assert answer.status == 400
    assert "args" in answer.body.decode()


def test_a_label_that_is_not_a_pod_field(server: Server) -> None:
    variables = [{"name": "X", "podFieldRef": {"path": "metadata.nothing"}}]
    refused = server.submit("no-field", "/bin/true", environmentVariables=variables)
    assert refused.status == 400
    [issue] = refused.json["complianceIssues"]
    assert issue["field"] == "spec.environmentVariables[0].podFieldRef.path"
