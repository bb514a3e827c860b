"""Everything from one server to another: `move`, `export`, `import file`, and `import runai` with our own server as the
source."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server

NODES = Path(__file__).parents[2] / "examples" / "nodes.yaml"
#: What a lab has, as commands.
LAB = (
    ("department", "create", "research", "--gpu-quota", "8"),
    ("project", "create", "vision", "--department", "research", "--gpu-quota", "2"),
    ("project", "create", "speech", "--department", "research", "--gpu-quota", "1"),
    ("user", "create", "ann@lab.example"),
    ("user", "grant", "ann@lab.example", "--project", "vision"),
    ("service-account", "create", "ci"),
    ("service-account", "grant", "ci", "--department", "research"),
    ("configmap", "create", "settings", "-p", "vision", "--from-literal", "mode=fast"),
    ("secret", "create", "wandb", "-p", "vision", "--from-literal", "key=s3cr3t"),
    ("pvc", "create", "data", "-p", "vision", "--size", "1Gi"),
    ("nodepool", "create", "small", "--label", "tier=small"),
    ("role", "create", "watcher", "--permission-set", "Departments: view"),
    ("user", "grant", "ann@lab.example", "--role", "watcher", "--department", "research"),
    ("credential", "create", "own", "--from-literal", "token=hidden-word"),
    ("notification", "add", "--webhook", "https://hooks.lab.example/x", "-p", "vision"),
)

POLICY = """
type: training
name: small-jobs
scope: department
department: research
rules: {imagePullPolicy: {options: [{value: IfNotPresent}]}}
"""


def write_lab(server: Server) -> Caller:
    """A lab on a server: organization, people, assets, templates, one waiting and one ended workload."""
    fairlead = Caller(server.data_dir)
    for words in LAB:
        fairlead.ok(*words)
    fairlead.ok("policy", "apply", "-f", "-", stdin=POLICY)
    with server.client() as client:
        vision = client.project("vision")
        place = {"scope": "project", "projectId": int(vision["id"])}
        compute = client.request(
            "POST", "/api/v1/asset/compute", {"meta": {"name": "one-gpu", **place}, "spec": {"gpuDevicesRequest": 1}}
        )
        client.request(
            "POST",
            "/api/v1/asset/credentials/password",
            {"meta": {"name": "registry", **place}, "spec": {"user": "bot", "password": "hidden-word"}},
        )
        client.request(
            "POST",
            "/api/v1/workload-templates/trainings",
            {
                "meta": {"name": "base", "scopeType": "project", "scopeId": vision["id"]},
                "spec": {"image": "fairlead.local/host", "command": "true"},
                "assets": {"compute": compute["meta"]["id"]},
            },
        )
    fairlead.ok("training", "submit", "waits", "-p", "vision", "-i", "x", "-g", "99", "--allow-pending", "--", "true")
    # It takes a variable of its caller along, which stays behind.
    pending = ("--name", "took", "--node-type", "none", "--allow-pending", "--export", "TRIED")
    fairlead.ok("run", "--detach", "-p", "vision", *pending, "--", "true", TRIED="1")
    fairlead.ok("training", "submit", "ends", "-p", "vision", "-i", "fairlead.local/host", "--", "true")
    fairlead.ok("wait", "ends", "-p", "vision", "--for", "Completed,Failed", "--timeout", "60s")
    assert fairlead("wait", "waits", "-p", "vision", "--for", "Pending", "--timeout", "60s").code == exit_codes.OK
    return fairlead


@pytest.fixture
def lab(make_server: Callable[..., Server]) -> Server:
    server = make_server("--shared", "--allow", "no-isolation", name="lab")
    write_lab(server)
    return server


def login(server: Server, folder: Path) -> tuple[str, ...]:
    secret = folder / "secret"
    secret.write_text(server.credentials["clientSecret"])
    return ("--client-id", server.credentials["clientId"], "--client-secret-file", str(secret))


def expect_lab(target: Server) -> None:
    with target.client() as client:
        department = next(row for row in client.departments() if row["name"] == "research")
        vision = client.project("vision")
        assert vision["parentId"] == department["id"]
        assert [row["gpu"]["deserved"] for row in vision["resources"]] == [2, 0]
        assert "ann@lab.example" in [row["username"] for row in client.request("GET", "/api/v1/users")]
        rules = client.request("GET", "/api/v1/authorization/access-rules")["accessRules"]
        assert ("ann@lab.example", "project", vision["id"]) in [
            (rule["subjectId"], rule["scopeType"], rule["scopeId"]) for rule in rules
        ]
        assert ("ci", "department", department["id"]) in [
            (rule["subjectId"], rule["scopeType"], rule["scopeId"]) for rule in rules
        ]
        roles = {role["name"]: role for role in client.request("GET", "/api/v2/authorization/roles")}
        assert [each["name"] for each in roles["watcher"]["permissionSets"]] == ["Departments: view"]
        assert ("ann@lab.example", roles["watcher"]["id"]) in [(rule["subjectId"], rule["roleId"]) for rule in rules]
        [template] = client.request("GET", "/api/v1/workload-templates")["entries"]
        [compute] = client.request("GET", "/api/v1/asset/compute")["entries"]
        assert template["assets"]["compute"] == compute["meta"]["id"]
        [config_map] = client.request("GET", "/api/v1/config-maps")["items"]
        assert client.request("GET", f"/api/v1/config-maps/{config_map['id']}")["data"] == {"mode": "fast"}


def test_a_lab_moves(lab: Server, make_server: Callable[..., Server], tmp_path: Path) -> None:
    target = make_server("--shared", "--allow", "no-isolation", name="target")
    fairlead = Caller(lab.data_dir)
    words = ("move", "--to", target.url, *login(target, tmp_path))
    planned = fairlead.ok(*words, "--dry-run")
    assert planned.startswith("Dry run: nothing was written.\nWould be created: 1 node pool, 1 department, 2 projects,")
    assert "1 policy" in planned.partition("\n")[2].partition("\n")[0]
    # The quotas that the new node pool brings about do not count as a difference.
    assert "differs" not in planned
    assert "vision" not in Caller(target.data_dir).ok("project", "list")

    moved = fairlead.ok(*words)
    expect_lab(target)
    assert "1 policy, 2 trainings" in moved
    assert "differs" not in moved
    assert "hidden-word" not in moved
    lost = moved.partition("Not carried over:\n")[2]
    assert "  password asset registry: its value is never shown" in lost
    assert "  secret wandb: its value is never shown" in lost
    assert "  personal credential own: its value is never shown" in lost
    assert "  notification rule hooks.lab.example: its keys are never shown" in lost
    assert "  claim data: data is not carried over" in lost
    assert "  environment of training took: its caller's variables are kept like secrets" in lost
    password = re.search(r"password of user ann@lab.example: (\S+)", moved)
    assert password is not None
    assert target.call("POST", "/api/v1/token", _password("ann@lab.example", password[1])).status == 200
    there = Caller(target.data_dir)
    assert "waits" in there.ok("list", "-p", "vision")
    assert "ends" not in there.ok("list", "-p", "vision")
    assert fairlead("wait", "waits", "-p", "vision", "--for", "Stopped", "--timeout", "60s").code == exit_codes.OK

    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"wandb": {"key": "s3cr3t"}, "registry": {"password": "hidden-word"}}))
    again = fairlead.ok(*words, "--secrets", str(secrets))
    assert "Created: 1 password asset, 1 secret\n" in again
    third = fairlead.ok(*words)
    assert "Created" not in third
    assert "Unchanged: 2 node pools, 2 departments, 3 projects," in third
    # What the target decided since then is not undone without a word.
    there.ok("policy", "apply", "-f", "-", stdin=POLICY.replace("IfNotPresent", "Always"))
    assert "policy small-jobs (trainings, department): differs; --update replaces it" in fairlead.ok(*words)
    assert "Changed: 1 policy" in fairlead.ok(*words, "--update")


def _password(name: str, password: str) -> dict[str, str]:
    return {"grantType": "password", "username": name, "password": password}


def test_a_file_and_our_own_server_as_runai(lab: Server, make_server: Callable[..., Server], tmp_path: Path) -> None:
    exported = tmp_path / "lab.json"
    Caller(lab.data_dir).ok("export", str(exported))
    assert exported.stat().st_mode & 0o777 == 0o600
    assert (
        json.loads(Caller(lab.data_dir).ok("export", "-"))["projects"] == json.loads(exported.read_text())["projects"]
    )
    assert "hidden-word" not in exported.read_text()
    assert "s3cr3t" not in exported.read_text()
    target = make_server("--shared", "--allow", "no-isolation", name="target")
    there = Caller(target.data_dir)
    there.ok("import", "file", str(exported))
    expect_lab(target)
    # The same by REST, as from Run:ai: everything is there already.
    words = ("import", "runai", "--url", lab.url, *login(lab, tmp_path))
    taken = there.ok(*words)
    assert "Created" not in taken
    assert (
        "Unchanged: 2 node pools, 2 departments, 3 projects, 1 user, 1 service account, 1 custom role, 3 access rules"
        in taken
    )

    Caller(lab.data_dir).ok("project", "update", "vision", "--gpu-quota", "3")
    assert "project vision: differs in resources; --update changes it" in there.ok(*words)
    assert "Changed: 1 project" in there.ok(*words, "--update")
    with target.client() as client:
        assert [row["gpu"]["deserved"] for row in client.project("vision")["resources"]] == [3, 0]


def test_what_is_refused(lab: Server, tmp_path: Path) -> None:
    fairlead = Caller(lab.data_dir)
    assert "/proc/no.json cannot be written" in fairlead("export", "/proc/no.json").err
    same = fairlead("move", "--to", lab.url)
    assert same.code == exit_codes.FAILED
    assert "is the same server" in same.err
    stranger = fairlead("move", "--to", lab.url, FAIRLEAD_DATA_DIR="", FAIRLEAD_URL="http://127.0.0.1:9")
    assert stranger.code == exit_codes.USAGE
    assert "Give a service account of that server with --client-id" in stranger.err
    (tmp_path / "no.json").write_text("{}")
    assert "is not an export of Fairlead" in fairlead("import", "file", str(tmp_path / "no.json")).err
    assert fairlead("import", "runai").code == exit_codes.USAGE
    (tmp_path / "wrong").write_text("wrong")
    words = ("import", "runai", "--url", lab.url, "--client-id", "x", "--client-secret-file", str(tmp_path / "wrong"))
    refused = fairlead(*words)
    assert refused.code == exit_codes.NOT_ALLOWED
    assert "does not accept the client id and secret" in refused.err
    assert "Check --client-id and --client-secret-file" in refused.err
    assert "fairlead login" not in refused.err
    # Who is not logged in to their own server is not told to log in to the source.
    right = login(lab, tmp_path)
    own = fairlead("import", "runai", "--url", lab.url, *right, FAIRLEAD_DATA_DIR="", FAIRLEAD_URL=lab.url)
    assert own.code == exit_codes.NOT_ALLOWED
    assert "Log in with `fairlead login`." in own.err
