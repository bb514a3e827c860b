"""`convert` and `explain` on the command line: results on one stream, what was lost on the other."""

import json
import shlex
from pathlib import Path

import pytest

from tests.unit.cli.calling import call

GOLDEN = Path(__file__).parents[3] / "golden"
REQUEST = str(GOLDEN / "training" / "hello.request.json")


def test_request_to_yaml_and_back(tmp_path: Path) -> None:
    made = call("convert", REQUEST, "--to", "yaml", "-p", "team-a", home=tmp_path)
    assert made.code == 0
    assert "namespace: runai-team-a" in made.out
    assert "clusterId" in made.err
    back = call("convert", "-", "--to", "rest", home=tmp_path, stdin=made.out)
    want = json.loads(Path(REQUEST).read_text())["spec"] | {"autoDeletionTimeAfterCompletionSeconds": 2_592_000}
    assert json.loads(back.out)["spec"] == want


@pytest.mark.parametrize("program", ["runai", "fairlead"])
def test_command_line_in_and_out(tmp_path: Path, program: str) -> None:
    line = [program, "training", "submit", "hello", "-i", "python:3", "-g", "1", "-e", "A=b c", "--", "x.py", "-v"]
    made = call("convert", "--to", "rest", "-o", "json", "--", *line, home=tmp_path)
    answer = json.loads(made.out)
    assert answer["results"][0] == {
        "name": "hello",
        "useGivenNameAsPrefix": False,
        "spec": {
            "image": "python:3",
            "args": "x.py -v",
            "environmentVariables": [{"name": "A", "value": "b c"}],
            "compute": {"gpuDevicesRequest": 1},
        },
    }
    assert answer["losses"] == []
    written = call("convert", "-", "--to", "flags", home=tmp_path, stdin=json.dumps(answer["results"][0]))
    again = call("convert", "-", "--to", "rest", home=tmp_path, stdin=written.out)
    assert json.loads(again.out) == answer["results"][0]


def test_a_command_over_several_lines(tmp_path: Path) -> None:
    lines = (
        "# a comment",
        "runai training submit hello\\",
        " -i 'py\\",
        "thon' -e \"A=it's \\",
        'here" \\',
        "-e 'B=it\"s' -- a\\'b",
    )
    text = "\n".join(lines)
    made = call("convert", "-", "--from", "command", "--to", "rest", home=tmp_path, stdin=text)
    spec = json.loads(made.out)["spec"]
    assert spec["image"] == "py\\\nthon"
    assert [one["value"] for one in spec["environmentVariables"]] == ["it's here", 'it"s']
    assert shlex.split(spec["args"]) == ["a'b"]


def test_flags_that_say_nothing_of_the_workload_are_listed(tmp_path: Path) -> None:
    line = ["runai", "training", "submit", "--name-prefix", "x", "-i", "a", "--template", "t", "--datasource", "d"]
    made = call("convert", "--to", "rest", "-o", "json", "--", *line, "--attach", "--debug", home=tmp_path)
    answer = json.loads(made.out)
    assert (answer["results"][0]["name"], answer["results"][0]["useGivenNameAsPrefix"]) == ("x", True)
    gone = {loss["path"] for loss in answer["losses"] if "now" not in loss}
    assert gone == {"--template", "--datasource", "--attach", "--debug"}
    told = call("convert", "--to", "rest", "--", *line, home=tmp_path).err
    assert "Not converted (2):\n  --template: only the server" in told
    assert "Converted with changes (1):\n  --name-prefix: the command line adds a number" in told


def test_unknown_members_of_a_request_are_listed(tmp_path: Path) -> None:
    body = {"name": "x", "spce": {}, "actualPhase": "Running", "spec": {"image": "i"}}
    told = call("convert", "-", "--to", "rest", home=tmp_path, stdin=json.dumps(body)).err
    assert "spce: is not a member of a creation request" in told
    assert "actualPhase: is state of the workload" in told


def test_losses_as_json(tmp_path: Path) -> None:
    body = {"name": "x", "spec": {"image": "i", "category": "Train", "backoffLimit": None}}
    made = call("convert", "-", "--to", "yaml", "-o", "json", home=tmp_path, stdin=json.dumps(body))
    losses = {loss["path"]: loss for loss in json.loads(made.out)["losses"]}
    assert losses["spec.category"]["value"] == "Train"
    assert losses["spec.backoffLimit"]["value"] is None
    assert losses["spec.autoDeletionTimeAfterCompletionSeconds"]["now"] == 2_592_000


READ = [
    *sorted(GOLDEN.glob("*/*.request.json")),
    *sorted((GOLDEN / "yaml/neighbours").iterdir()),
    *sorted((GOLDEN / "yaml/reference").glob("*.yaml")),
]
#: What workload YAML refuses of them, which their own dialect or their list of losses says already.
REFUSED = {
    "older-page.request.json": "has authorizedUsers and authorizedGroups",
    "train.sbatch": "spec.image: is missing",
}


@pytest.mark.parametrize("path", READ, ids=lambda path: f"{path.parent.name} {path.name}")
def test_every_pair_of_dialects(tmp_path: Path, path: Path) -> None:
    """Whatever is read is written in every dialect, and each of those that are read is written again."""
    for target in ("rest", "yaml", "flags", "kubernetes"):
        made = call("convert", str(path), "--to", target, home=tmp_path)
        if target == "yaml" and path.parent.name == "distributed-inference":
            assert (made.code, "Workload YAML has no" in made.err) == (1, True)
            continue
        assert (made.code, bool(made.out)) == (0, True), made.err
        if target == "kubernetes":
            continue
        for further in ("rest", "flags", "kubernetes"):
            again = call("convert", "-", "--to", further, home=tmp_path, stdin=made.out)
            if target == "yaml" and path.name in REFUSED:
                assert (again.code, REFUSED[path.name] in again.err) == (1, True), again.err
                continue
            assert (again.code, bool(again.out)) == (0, True), (target, further, again.err)


def test_kubernetes_objects(tmp_path: Path) -> None:
    made = call("convert", REQUEST, "--to", "kubernetes", "-p", "team-a", home=tmp_path)
    assert (made.code, "kind: Job" in made.out, "namespace: runai-team-a" in made.out) == (0, True, True)


def test_kubernetes_objects_list_what_is_beside_the_spec(tmp_path: Path) -> None:
    master = {"image": "i", "category": "Train"}
    body = {"name": "x", "useGivenNameAsPrefix": True, "spec": {"image": "i"}, "masterSpec": master}
    made = call("convert", "-", "--to", "kubernetes", "-o", "json", home=tmp_path, stdin=json.dumps(body))
    assert [loss["path"] for loss in json.loads(made.out)["losses"]] == ["useGivenNameAsPrefix", "masterSpec.category"]


@pytest.mark.parametrize(
    ("words", "stdin", "want_code", "want_words"),
    [
        pytest.param(["convert"], "", 2, "Nothing to convert.", id="nothing"),
        pytest.param(["convert", "/nowhere/x"], "", 2, "cannot be read", id="no file"),
        pytest.param(["convert", "-"], "what is this", 1, "--from", id="no dialect"),
        pytest.param(["convert", "--", "runai", "training", "list"], "", 2, "submit", id="another command"),
        pytest.param(
            ["convert", "--", "runai", "training", "submit", "a", "b"], "", 2, "unexpected argument 'b'", id="two names"
        ),
        pytest.param(
            ["convert", "--", "runai", "training", "submit", "a", "--name-prefix", "b"], "", 2, "not both", id="prefix"
        ),
        pytest.param(["convert", "-", "--to", "xml"], "", 2, "one of rest, yaml", id="no target"),
        pytest.param(["explain", "trainingworkload.spec.imag"], "", 3, "Did you mean image?", id="no field"),
    ],
)
def test_refusals(tmp_path: Path, words: list[str], stdin: str, want_code: int, want_words: str) -> None:
    answer = call(*words, home=tmp_path, stdin=stdin)
    assert answer.code == want_code
    assert want_words in answer.err


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('{"name": "x",\n "spec": {"image" "i"}}', ":2:", id="broken JSON"),
        pytest.param('{"name": "x", "spec": {"imag": "i"}}', ": spec.imag: ", id="unknown member"),
        pytest.param("name: x\nspec: {image: i, imag: i}", ": spec.imag: ", id="unknown member of a request in YAML"),
        pytest.param("", ": The text is empty", id="empty"),
        pytest.param("- a", ": The format of the text is not known", id="no dialect"),
        pytest.param("type: task\ncommands: 3", ": The text is not a valid dstack description", id="no task"),
    ],
)
def test_mistakes_name_their_file(tmp_path: Path, text: str, want: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(text)
    answer = call("convert", str(file), "--to", "rest", home=tmp_path)
    assert answer.code == 1
    assert f"fairlead: {file}{want}" in answer.err
    piped = call("convert", "-", "--to", "rest", home=tmp_path, stdin=text)
    assert f"fairlead: standard input{want}" in piped.err


@pytest.mark.parametrize(
    ("words", "stdin", "want"),
    [
        pytest.param(["--", "runai", "training", "submit", "x", "-i", "i", "-p", "a"], "", "--project", id="command"),
        pytest.param(["-", "-p", "a"], '{"name": "x", "spec": {"image": "i"}}', "--project", id="flag of convert"),
        pytest.param(
            ["-"],
            "apiVersion: run.ai/v2alpha1\nkind: TrainingWorkload\nmetadata: {name: x, namespace: runai-a}\n"
            "spec: {name: {value: x}, image: {value: i}}\n",
            "metadata.namespace",
            id="YAML",
        ),
    ],
)
def test_a_project_that_is_lost_is_named_as_it_was_given(
    tmp_path: Path, words: list[str], stdin: str, want: str
) -> None:
    made = call("convert", "--to", "rest", "-o", "json", *words, home=tmp_path, stdin=stdin)
    assert [loss["path"] for loss in json.loads(made.out)["losses"]] == [want]


def test_explain(tmp_path: Path) -> None:
    text = call("explain", "trainingworkload.spec.gpu", home=tmp_path).out
    assert "spec.compute.gpuPortionRequest" in text
    decoded = json.loads(call("explain", "trainingworkload.spec", "-o", "json", home=tmp_path).out)
    assert len(decoded["fields"]) > 60
