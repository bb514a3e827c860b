"""The command line against a real server: submit, look, follow, act, wait."""

import json
from pathlib import Path

import pytest
import yaml

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until

HOST = ("--image", "fairlead.local/host")


@pytest.fixture
def fairlead(server: Server) -> Caller:
    return Caller(server.data_dir)


def submit(fairlead: Caller, *arguments: str) -> str:
    return fairlead.ok("training", "submit", *HOST, *arguments).strip()


def test_submit_wait_logs(fairlead: Caller) -> None:
    name = submit(fairlead, "first", "--command", "--", "sh", "-c", "echo one; echo two")
    assert name == "first"
    assert fairlead("wait", name, "--for", "Completed", "--timeout", "120s").code == exit_codes.OK
    assert fairlead.ok("training", "logs", name) == "one\ntwo\n"
    assert fairlead.ok("logs", name, "--tail", "1") == "two\n"
    assert fairlead.ok("logs", "--name", name, "--limit-bytes", "3") == "one"
    assert fairlead.ok("logs", name, "--since", "1h30m") == "one\ntwo\n"
    stamped = fairlead.ok("logs", name, "--timestamps").splitlines()
    assert [line.split(" ", 1)[1] for line in stamped] == ["one", "two"]


def test_submit_says_the_name_on_stdout_and_the_rest_beside_it(fairlead: Caller) -> None:
    called = fairlead("training", "standard", "submit", *HOST, "quiet-one", "-c", "--", "true")
    assert called.out == "quiet-one\n"
    assert called.err == "Submitted. Follow it with `fairlead training logs -f quiet-one`.\n"
    assert fairlead("training", "submit", "-q", *HOST, "quiet-two", "-c", "--", "true").err == ""
    named = fairlead("training", "submit", "-p", "default", *HOST, "quiet-three", "-c", "--", "true")
    assert named.err == "Submitted. Follow it with `fairlead training logs -f quiet-three --project default`.\n"


def test_submit_from_a_file_with_flags_over_it(fairlead: Caller, tmp_path: Path) -> None:
    file = tmp_path / "training.json"
    spec = {"image": "fairlead.local/host", "command": "sh", "args": "-c 'echo $WHO'", "backoffLimit": 0}
    file.write_text(json.dumps({"name": "from-file", "spec": spec}))
    assert submit(fairlead, "-f", str(file), "-e", "WHO=me", "--attach") == "from-file\nme"
    created = json.loads(fairlead.ok("training", "submit", "-f", "-", "named", "--json", stdin=file.read_text()))
    assert created["name"] == "named"
    assert created["spec"] == spec


def test_attach_ends_with_the_exit_code(fairlead: Caller) -> None:
    words = ("--backoff-limit", "0", "--attach", "-c", "--", "sh", "-c", "echo out; exit 7")
    called = fairlead("training", "submit", *HOST, "attached", *words)
    assert (called.code, called.out) == (7, "attached\nout\n")


def test_name_prefix_counts_up(fairlead: Caller) -> None:
    words = ("--name-prefix", "count", "-c", "--", "true")
    assert [submit(fairlead, *words) for _ in range(3)] == ["count-1", "count-2", "count-3"]


def test_without_a_name_one_is_made(fairlead: Caller) -> None:
    assert submit(fairlead, "-c", "--", "true").startswith("training-")


def test_every_issue_names_its_field(fairlead: Caller) -> None:
    called = fairlead("training", "submit", "bad", *HOST, "--parallelism", "3", "--run-as-uid", "-5", "--", "x")
    assert called.code == exit_codes.FAILED
    assert called.out == ""
    assert "--parallelism: " in called.err
    assert "--run-as-uid: " in called.err


def test_a_name_twice(fairlead: Caller) -> None:
    submit(fairlead, "twice", "-c", "--", "true")
    called = fairlead("training", "submit", *HOST, "twice", "-c", "--", "true")
    assert called.code == exit_codes.FAILED
    assert "twice" in called.err


def test_list_in_every_form(fairlead: Caller) -> None:
    submit(fairlead, "listed", "-c", "--", "true")
    assert fairlead("wait", "listed").code == 0
    assert "listed" in fairlead.ok("list", "-o", "name").splitlines()
    rows = json.loads(fairlead.ok("training", "list", "--json"))
    assert next(row for row in rows if row["name"] == "listed")["phase"] == "Completed"
    assert yaml.safe_load(fairlead.ok("workload", "list", "--yaml"))[0].keys() == rows[0].keys()
    table = fairlead.ok("training", "list").splitlines()
    assert table[0].split()[:4] == ["NAME", "TYPE", "STATUS", "PROJECT"]
    bare = fairlead.ok("training", "list", "--no-headers").splitlines()
    assert [line.split()[0] for line in bare] == [line.split()[0] for line in table[1:]]
    assert "IMAGE" in fairlead.ok("list", "-o", "wide").splitlines()[0]
    assert "listed" not in fairlead.ok("list", "--status", "suspended", "-o", "name")
    assert "\x1b" not in "".join(table)


def test_a_page_that_is_not_all_says_so(fairlead: Caller) -> None:
    for _ in range(2):
        submit(fairlead, "-c", "--", "true")
    called = fairlead("list", "--limit", "1", "-o", "name")
    assert len(called.out.splitlines()) == 1
    assert called.err.startswith("Showing 1 to 1 of ")


def test_describe(fairlead: Caller) -> None:
    submit(fairlead, "described", "--cpu-core-request", "0.1", "-c", "--", "true")
    assert fairlead("wait", "described").code == 0
    page = fairlead.ok("describe", "described")
    assert "Status:        Completed" in page
    assert "CPU cores:  request 0.1" in page
    assert "described-0-0" in page
    assert "\nEvents\n" in page
    assert "\nEvents\n" not in fairlead.ok("training", "describe", "described", "--events=false")
    decoded = json.loads(fairlead.ok("workload", "describe", "described", "-o", "json"))
    assert (decoded["name"], decoded["pods"][0]["exitCode"]) == ("described", 0)


def test_suspend_resume_delete(fairlead: Caller) -> None:
    submit(fairlead, "moved", "-c", "--", "sleep", "600")
    assert fairlead("wait", "moved", "--for", "Running", "--timeout", "120s").code == 0
    assert fairlead("training", "suspend", "moved").err == "moved: suspend requested.\n"
    assert fairlead("wait", "moved", "--for", "Suspended", "--timeout", "120s").code == 0
    fairlead.ok("training", "resume", "moved")
    assert fairlead("wait", "moved", "--for", "Running", "--timeout", "120s").code == 0
    wrong = fairlead("workspace", "suspend", "moved")
    assert wrong.code == exit_codes.NOT_FOUND
    assert (
        "There is no workspace 'moved' in project default. The workload with that name has type Training." in wrong.err
    )
    waiting = fairlead.start("wait", "moved", "--for", "Deleted", "--timeout", "120s")
    called = fairlead("training", "delete", "moved", "no-such-one")
    assert called.code == exit_codes.NOT_FOUND
    assert "moved: delete requested." in called.err
    assert "There is no training 'no-such-one' in project default." in called.err
    assert waiting.communicate(timeout=180)[0] == ""
    assert waiting.returncode == exit_codes.OK
    assert fairlead("wait", "moved", "--for", "Deleted").code == exit_codes.OK
    assert fairlead("wait", "no-such-one", "--for", "Deleted").code == exit_codes.NOT_FOUND
    assert "moved" in fairlead.ok("list", "--deleted", "-o", "name").splitlines()
    until(lambda: "moved" not in fairlead.ok("list", "-o", "name").splitlines(), "the end of its pods")


@pytest.mark.parametrize(
    ("verb", "want"),
    [("suspend", "is Completed, so suspend has no effect"), ("resume", "is Completed, so resume has no effect")],
)
def test_what_no_longer_has_an_effect_is_reported(fairlead: Caller, verb: str, want: str) -> None:
    name = submit(fairlead, "--name-prefix", "over", "-c", "--", "true")
    assert fairlead("wait", name, "--timeout", "120s").code == exit_codes.OK
    called = fairlead("training", verb, name)
    assert (called.code, called.err) == (exit_codes.OK, f"{name}: {want}.\n")


def test_workload_delete_knows_the_kind(fairlead: Caller) -> None:
    submit(fairlead, "gone", "-c", "--", "sleep", "600")
    fairlead.ok("workload", "delete", "gone")
    assert "gone" not in fairlead.ok("list", "-o", "name").splitlines()


@pytest.mark.parametrize(
    ("command", "phase", "want"),
    [
        pytest.param("true", "Completed", exit_codes.OK, id="reached"),
        pytest.param("false", "Completed", exit_codes.ENDED_OTHERWISE, id="ended otherwise"),
        pytest.param("false", "Completed,Failed", exit_codes.OK, id="either"),
        pytest.param("sleep 600", "Completed", exit_codes.TIMED_OUT, id="not in time"),
    ],
)
def test_wait_says_by_its_exit_code(fairlead: Caller, command: str, phase: str, want: int) -> None:
    name = submit(fairlead, "--name-prefix", "waited", "--backoff-limit", "0", "-c", "--", *command.split())
    timeout = "1s" if want == exit_codes.TIMED_OUT else "120s"
    called = fairlead("wait", name, "--for", phase, "--timeout", timeout)
    assert called.code == want
    assert ("Timed out: " in called.err) == (want == exit_codes.TIMED_OUT)
    fairlead("training", "delete", name)


def test_a_name_that_is_nearly_right(fairlead: Caller) -> None:
    submit(fairlead, "resnet", "-c", "--", "true")
    called = fairlead("logs", "resnett")
    assert called.code == exit_codes.NOT_FOUND
    assert "Did you mean resnet?" in called.err
    called = fairlead("list", "-p", "defualt")
    assert (called.code, "Did you mean default?" in called.err) == (exit_codes.NOT_FOUND, True)


def test_places(fairlead: Caller) -> None:
    for noun in ("project", "cluster", "node", "nodepool"):
        names = fairlead.ok(noun, "list", "-o", "name").splitlines()
        assert [row["name"] for row in json.loads(fairlead.ok(noun, "list", "--json"))] == names
        assert names[0] in fairlead.ok(noun, "list").splitlines()[1]


def test_the_project_of_choice(fairlead: Caller, tmp_path: Path) -> None:
    place = ("--config-path", str(tmp_path))
    assert fairlead(*place, "project", "set", "nonsense").code == exit_codes.NOT_FOUND
    fairlead.ok(*place, "project", "set", "default")
    assert fairlead.ok(*place, "config", "get", "project") == "default\n"
    assert "default *" in fairlead.ok(*place, "project", "list")


def test_log_in_elsewhere(fairlead: Caller, server: Server, tmp_path: Path) -> None:
    """From another machine, as it were: an address and credentials, no data folder."""
    credentials = json.loads((server.data_dir / "credentials.json").read_text())
    url = json.loads((server.data_dir / "server.json").read_text())["url"]
    place = ("--config-path", str(tmp_path / "config"), "--data-dir", str(tmp_path / "none"))
    called = fairlead(*place, "--url", url, "list")
    assert (called.code, "fairlead login" in called.err) == (exit_codes.NOT_ALLOWED, True)
    wrong = fairlead(*place, "--url", url, "login", "user", "-u", credentials["username"], "-p", "wrong")
    assert wrong.code == exit_codes.NOT_ALLOWED, wrong
    piped = (*place, "--url", url, "login", "-u", credentials["username"], "--password-stdin")
    assert fairlead(*piped, stdin="").code == exit_codes.USAGE
    fairlead.ok(*piped, stdin=credentials["password"] + "\n")
    assert fairlead.ok(*place, "whoami", "-o", "name").strip() == credentials["username"]
    fairlead.ok(*place, "list")
    assert fairlead(*place, "logout").code == 0
    assert fairlead(*place, "list").code == exit_codes.NOT_ALLOWED
    words = ("login", "application", "--name", credentials["clientId"], "--secret", credentials["clientSecret"])
    fairlead.ok(*place, *words)
    fairlead.ok(*place, "list")


def test_a_login_belongs_to_the_configuration_that_was_named(fairlead: Caller, server: Server, tmp_path: Path) -> None:
    """Also where the server is this machine's own, which needs none."""
    credentials = json.loads((server.data_dir / "credentials.json").read_text())
    words = ("login", "user", "-u", credentials["username"], "-p", credentials["password"])
    one, other = (("--config-path", str(tmp_path / name)) for name in ("one", "other"))
    before = fairlead.ok(*one, "whoami", "-o", "name")
    fairlead.ok(*one, *words)
    assert (tmp_path / "one" / "tokens.json").stat().st_mode & 0o777 == 0o600
    assert fairlead.ok(*one, "whoami", "-o", "name").strip() == credentials["username"]
    assert fairlead.ok(*other, "whoami", "-o", "name") == before != credentials["username"] + "\n"
    fairlead.ok(*one, "logout")
    assert fairlead.ok(*one, "whoami", "-o", "name") == before


def test_an_expired_token_is_replaced(fairlead: Caller, server: Server) -> None:
    fairlead.ok("list")
    tokens = server.data_dir / "cli-tokens.json"
    kept = json.loads(tokens.read_text())
    for entry in kept.values():
        entry["access"] += "x"
    tokens.write_text(json.dumps(kept))
    fairlead.ok("list")
    assert json.loads(tokens.read_text()) != kept


def test_completion_knows_commands_and_names(fairlead: Caller) -> None:
    submit(fairlead, "completed-name", "-c", "--", "true")
    assert "training" in fairlead.ok("__complete", "tr").splitlines()
    assert fairlead.ok("__complete", "training", "su").splitlines() == ["submit", "suspend"]
    assert fairlead.ok("__complete", "training", "py").splitlines() == ["pytorch"]
    assert fairlead.ok("__complete", "training", "submit", "--cpu-core-r").splitlines() == ["--cpu-core-request"]
    assert fairlead.ok("__complete", "logs", "completed-n").splitlines() == ["completed-name"]
    assert fairlead.ok("__complete", "list", "-p", "").splitlines() == ["default"]
    assert fairlead.ok("__complete", "list", "-o", "j").splitlines() == ["json"]
    for shell in ("bash", "zsh", "fish"):
        assert "__complete" in fairlead.ok("completion", shell)


def test_version(fairlead: Caller) -> None:
    versions = json.loads(fairlead.ok("version", "--json"))
    assert versions["client"] == versions["server"]


def test_of_several_roles_the_master_is_chosen(fairlead: Caller) -> None:
    words = ("--workers", "2", "--cpu-core-request", "0.1", "-c", "--", "sh", "-c", "echo $(hostname) $RANK")
    fairlead.ok("training", "pytorch", "submit", *HOST, "ranks", *words)
    assert fairlead("wait", "ranks", "--timeout", "120s").code == exit_codes.OK
    pods = {pod["name"] for pod in json.loads(fairlead.ok("describe", "ranks", "--json"))["pods"]}
    assert len(pods) == 3
    said = {pod: fairlead.ok("logs", "ranks", "--pod", pod) for pod in pods}
    master = next(pod for pod in pods if "master" in pod)
    assert fairlead.ok("logs", "ranks") == said[master]
    assert len(set(said.values())) == 3


def test_without_an_image_a_command_uses_the_machines_own_files(fairlead: Caller) -> None:
    called = fairlead("training", "submit", "imageless", "--", "echo", "hi there")
    assert (called.code, called.out) == (0, "imageless\n")
    assert "No image given: the command uses the files of the server's machine." in called.err
    assert fairlead("wait", "imageless", "--timeout", "120s").code == exit_codes.OK
    assert fairlead.ok("logs", "imageless") == "hi there\n"


def test_one_grammar_for_workloads_of_every_kind(fairlead: Caller) -> None:
    sleeping = ("--", "sleep", "600")
    for name in ("grammar-a", "grammar-b"):
        submit(fairlead, name, "--label", "set=grammar", "-c", *sleeping)
    fairlead.ok("workspace", "submit", "grammar-c", *HOST, "--label", "set=grammar", "-c", *sleeping)
    called = fairlead("suspend", "grammar-a", "grammar-c")
    assert called.err == "grammar-a: suspend requested.\ngrammar-c: suspend requested.\n"
    assert fairlead("wait", "grammar-c", "--for", "Stopped", "--timeout", "120s").code == 0
    fairlead.ok("resume", "grammar-c")
    assert fairlead.ok("describe", "grammar-a", "grammar-b", "-o", "name") == "grammar-a\ngrammar-b\n"
    tried = fairlead.ok("delete", "-l", "set=grammar", "--dry-run") + fairlead.ok("delete", "grammar-a", "--dry-run")
    assert sorted(set(tried.splitlines())) == [f"grammar-{letter}: would be deleted" for letter in "abc"]
    refused = fairlead("delete", "--selector", "set=grammar")
    assert refused.code == exit_codes.USAGE
    assert "This would delete 3 workloads. Add --yes." in refused.err
    deleted = fairlead("delete", "--selector", "set=grammar", "--yes")
    assert sorted(deleted.err.splitlines()) == [f"grammar-{letter}: delete requested." for letter in "abc"]
    assert fairlead("delete", "-l", "set=nothing", "-y").code == exit_codes.NOT_FOUND


def test_the_output_of_all_pods_has_their_names(fairlead: Caller) -> None:
    submit(
        fairlead, "several", "--completions", "2", "--parallelism", "2", "-c", "--", "sh", "-c", "echo one; echo two"
    )
    assert fairlead("wait", "several", "--timeout", "120s").code == 0
    lines = fairlead.ok("logs", "several", "--all").splitlines()
    pods = sorted({line.split()[0] for line in lines})
    assert len(pods) == 2
    assert sorted(lines) == sorted(f"{pod} | {word}" for pod in pods for word in ("one", "two"))
    assert sorted(fairlead.ok("logs", "-f", "several", "--all", "--tail", "1").splitlines()) == [
        f"{pod} | two" for pod in pods
    ]


def test_who_waits_and_how_full_the_nodes_are(fairlead: Caller) -> None:
    submit(fairlead, "hopeful", "--allow-pending", "--cpu-core-request", "4000", "-c", "--", "true")
    assert fairlead("wait", "hopeful", "--for", "Pending", "--timeout", "120s").code == 0
    rows = json.loads(fairlead.ok("queue", "-o", "json"))
    assert "hopeful" in [row["name"] for row in rows]
    assert fairlead.ok("queue").startswith("#  NAME")
    fairlead.ok("delete", "hopeful")
    full = json.loads(fairlead.ok("top", "-o", "json"))
    [node] = full["nodes"]
    assert node["cpus"] > 0
    assert node["freeGpus"] == node["gpus"] - node["allocatedGpus"]
    assert fairlead.ok("top").startswith("NODE")
    assert "FREE GPUS" in fairlead.ok("node", "list")


def test_tasks_of_an_array_have_their_indices_and_keep_them_when_they_are_retried(
    fairlead: Caller, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    index = "$FAIRLEAD_ARRAY_INDEX"
    script = f"[ -e {tmp_path}/{index} ] && echo done {index} && exit; touch {tmp_path}/{index}; exit 1"
    submit(fairlead, "tasks", "--array", "3-9:2%2", "-c", "--", "sh", "-c", script)
    assert fairlead("wait", "tasks", "--timeout", "120s").code == exit_codes.OK
    assert "one of 8 pods; `fairlead logs tasks --all` shows all of them" in fairlead("logs", "tasks").err
    lines = fairlead.ok("logs", "tasks", "--all").splitlines()
    assert sorted(line.split(" | ")[1] for line in lines) == ["done 3", "done 5", "done 7", "done 9"]


def test_a_workload_starts_after_another_has_completed(fairlead: Caller, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    submit(fairlead, "prep", "-c", "--", "sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    submit(fairlead, "then", "--after", "prep", "-c", "--", "echo", "after prep")
    assert fairlead("wait", "then", "--for", "Pending", "--timeout", "120s").code == exit_codes.OK
    assert "Waiting for prep to complete" in fairlead.ok("why", "then")
    (tmp_path / "go").touch()
    assert fairlead("wait", "then", "--timeout", "120s").code == exit_codes.OK
    assert fairlead.ok("logs", "then") == "after prep\n"
    refused = fairlead("training", "submit", "typo", *HOST, "--after", "perp", "-c", "--", "true")
    assert "project default has no workload perp" in refused.err


def test_a_workload_never_starts_after_one_that_failed(fairlead: Caller, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; exit 1"
    submit(fairlead, "broken", "--backoff-limit", "0", "-c", "--", "sh", "-c", script)
    submit(fairlead, "hopeless", "--after", "broken", "-c", "--", "true")
    submit(fairlead, "cleanup", "--after", "any:broken", "-c", "--", "true")
    (tmp_path / "go").touch()
    assert fairlead("wait", "cleanup", "--timeout", "120s").code == exit_codes.OK
    assert "Can never start: broken failed" in fairlead.ok("why", "hopeless")
    refused = fairlead("run", "--name", "later", "--after", "broken", "--", "true")
    assert refused.code == exit_codes.RUN_FAILED
    assert "Can never start: broken failed." in refused.err
    assert "--allow-pending submits it" in refused.err
    submit(fairlead, "alone", "--label", "only=this", "-c", "--", "true")
    unconfirmed = fairlead("delete", "--selector", "only=this")
    assert "This would delete 1 workload. Add --yes." in unconfirmed.err
    fairlead.ok("delete", "hopeless", "alone")


def test_a_time_limit_stops_it(fairlead: Caller) -> None:
    submit(fairlead, "timed", "--time", "1s", "-c", "--", "sleep", "600")
    assert fairlead("wait", "timed", "--for", "Stopped", "--timeout", "120s").code == exit_codes.OK
    assert "it has run for 1 s, its time limit" in fairlead.ok("describe", "timed", "-o", "json")
    words = ("--annotation", "fairlead/time-limit=soon", "-c", "--", "true")
    refused = fairlead("training", "submit", "untimed", *HOST, *words)
    assert "fairlead/time-limit must be a number of seconds, not 'soon'" in refused.err


def test_a_workload_that_does_not_exist_is_named_once(fairlead: Caller) -> None:
    called = fairlead("delete", "nosuch")
    assert (called.code, called.err.count("nosuch")) == (exit_codes.NOT_FOUND, 1), called.err


def test_files_are_copied_to_and_from_a_pod(fairlead: Caller, tmp_path: Path) -> None:
    fairlead.ok("training", "submit", "copies", "--image", "fairlead.local/host", "-c", "--", "sleep", "600")
    assert fairlead("wait", "copies", "--for", "Running", "--timeout", "120s").code == 0
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").write_text("1")
    fairlead.ok("cp", str(tmp_path / "data"), "copies:/tmp/copied-data")
    assert fairlead.ok("exec", "copies", "--", "cat", "/tmp/copied-data/one") == "1"
    fairlead.ok("cp", str(tmp_path / "data" / "one"), "copies:/tmp/copied-data")
    fairlead.ok("cp", "copies:/tmp/copied-data", str(tmp_path / "back"))
    assert (tmp_path / "back" / "one").read_text() == "1"
    copied = fairlead("cp", "copies:/tmp/copied-data/one", f"{tmp_path}/.")
    assert copied.err.endswith(f"to {tmp_path}.\n")
    assert (tmp_path / "one").read_text() == "1"
    missing = fairlead("cp", "copies:/tmp/nothing", str(tmp_path / "x"))
    assert missing.code == exit_codes.FAILED
    assert missing.err == "fairlead: There is no file or folder copies:/tmp/nothing.\n"
    nowhere = fairlead("cp", str(tmp_path / "one"), "copies:/tmp/nothing/there/one")
    assert nowhere.err == (
        "fairlead: There is no folder for copies:/tmp/nothing/there/one; create /tmp/nothing/there first.\n"
    )
    assert fairlead("cp", "a", "b").code == exit_codes.USAGE
    fairlead.ok("exec", "copies", "--", "rm", "-r", "/tmp/copied-data")
    fairlead.ok("delete", "copies")
