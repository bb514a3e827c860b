"""A day with NVIDIA's own client for Run:ai 2.24, unchanged: setup by an administrator, a researcher's work, reports.

One test per hour of the day, in their order: each needs what those before it made.
"""

import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.e2e.test_runapy import connect, wait

with warnings.catch_warnings():
    # Its sources have escape sequences that Python warns of when it compiles them for the first time.
    warnings.simplefilter("ignore")
    from runai.api_client import ApiClient
    from runai.configuration import Configuration
    from runai.exceptions import BadRequestException, ForbiddenException
    from runai.runai_client import RunaiClient

pytestmark = pytest.mark.xdist_group("runapy day")
#: An endless program, and one that prints a line.
SLEEP = {"command": "sleep", "args": "600"}
HELLO = {"command": "echo", "args": "hello"}


class Day:
    """What the hours of the day know of each other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cluster = server.credentials["clusterId"]
        self.connections = [connect(server)]
        # Its types say less than what it takes: bodies may be dictionaries.
        self.admin: Any = RunaiClient(self.connections[0])
        self.researcher: Any = None
        self.ids: dict[str, str] = {}

    def log_in(self, client_id: str, secret: str) -> Any:
        configuration = Configuration(
            client_id=client_id, client_secret=secret, runai_base_url=self.server.url, retry_enabled=False
        )
        self.connections.append(ApiClient(configuration))
        return RunaiClient(self.connections[-1])

    def body(self, name: str, **spec: object) -> dict[str, object]:
        given = {"image": "python:3", **spec}
        return {"name": name, "projectId": self.ids["project"], "clusterId": self.cluster, "spec": given}

    def until_phase(self, id: str, *phases: str) -> str:
        return wait(self.researcher, id, *phases)


@pytest.fixture(scope="module")
def day(server: Server) -> Iterator[Day]:
    made = Day(server)
    yield made
    for connection in made.connections:
        connection.close()


def quota(gpu: float) -> dict[str, object]:
    return {
        "nodePool": {"id": "1", "name": "default"},
        "gpu": {"deserved": gpu, "limit": None, "overQuotaWeight": 1},
        "cpu": {"deserved": None, "limit": None, "overQuotaWeight": 1},
        "memory": {"deserved": None, "limit": None, "overQuotaWeight": 1, "units": "Mib"},
    }


def test_08_the_administrator_makes_a_department_and_a_project(day: Day) -> None:
    units = day.admin.organizations
    assert [one["uuid"] for one in units.clusters.get_clusters().data] == [day.cluster]
    fields = {"clusterId": day.cluster, "resources": [quota(8)]}
    department = units.departments.create_department(department_creation_request={"name": "research", **fields}).data
    body = {"name": "vision", "parentId": department["id"], "clusterId": day.cluster, "resources": [quota(4)]}
    project = units.projects.create_project(project_creation_request=body).data
    day.ids |= {"department": department["id"], "project": str(project["id"])}
    until(
        lambda: units.projects.get_project(project_id=project["id"]).data["status"]["phase"] == "Ready",
        "that the project is ready",
    )


def test_09_people_and_their_roles(day: Day) -> None:
    people = day.admin.authentication_and_authorization
    made = people.users.create_user(user_creation_request1={"email": "ann@example.com", "resetPassword": False}).data
    assert made["tempPassword"]
    account = people.service_accounts.create_service_account(service_account_creation_request={"name": "ann-script"})
    roles = {role["name"]: role["id"] for role in people.roles.get_roles_v1().data}
    script = (account.data["clientId"], "service-account")
    grants = (
        ("L1 researcher", "ann@example.com", "user"),
        ("L1 researcher", *script),
        # Researchers do not serve models.
        ("ML engineer", *script),
    )
    for role, subject, type in grants:
        rule = {
            "subjectId": subject,
            "subjectType": type,
            "roleId": roles[role],
            "scopeType": "project",
            "scopeId": day.ids["project"],
        }
        answer = people.access_rules.create_access_rule(access_rule_creation_fields=rule)
        assert answer.status_code in (201, 202)
    day.researcher = day.log_in(account.data["clientId"], account.data["clientSecret"])
    seen = day.researcher.organizations.projects.get_projects().data["projects"]
    assert [project["name"] for project in seen] == ["vision"]
    with pytest.raises(ForbiddenException):
        day.researcher.organizations.departments.create_department(
            department_creation_request={"name": "mine", "clusterId": day.cluster, "resources": [quota(1)]}
        )


def test_10_a_policy_for_the_project(day: Day) -> None:
    body = {
        "meta": {"name": "small", "scope": "project", "projectId": int(day.ids["project"])},
        "policy": {
            "defaults": {"environmentVariables": {"instances": [{"name": "TEAM", "value": "vision"}]}},
            "rules": {"compute": {"cpuCoreRequest": {"max": 1}}},
        },
    }
    policies = day.admin.policies.policy
    checked = policies.overwrite_training_policy_v2(validate_only=True, training_policy_overwrite_request_v2=body)
    assert checked.status_code in (200, 204)
    policies.overwrite_training_policy_v2(training_policy_overwrite_request_v2=body)
    shown = policies.get_training_policy_v2(scope="project", project_id=day.ids["project"]).data
    assert shown["policy"]["rules"]["compute"]["cpuCoreRequest"]["max"] == 1


def test_11_assets_and_a_template(day: Day) -> None:
    meta = {"scope": "project", "projectId": int(day.ids["project"])}
    assets = day.admin.workload_assets
    environment = assets.environment.create_environment_asset(
        environment_creation_request={"meta": {"name": "python", **meta}, "spec": {"image": "python:3", **HELLO}}
    ).data
    compute = assets.compute.create_compute_asset(
        compute_creation_request={"meta": {"name": "cpu", **meta}, "spec": {"cpuCoreRequest": 0.1}}
    ).data
    day.ids |= {"environment": environment["meta"]["id"], "compute": compute["meta"]["id"]}
    scope = {"scopeType": "project", "scopeId": day.ids["project"]}
    greet = {"meta": {"name": "greet", **scope}, "spec": {"image": "python:3", **HELLO}}
    template = day.admin.workloads.workload_templates.create_training_template(
        training_template_creation_request=greet
    ).data
    id = template["meta"]["id"]
    shown = day.researcher.workloads.workload_templates.get_training_template(template_id=id).data
    assert shown["spec"]["args"] == "hello"
    listed = day.researcher.workload_assets.environment.list_environment_assets().data
    assert "python" in [one["meta"]["name"] for one in listed["entries"]]


def test_12_the_researcher_trains(day: Day) -> None:
    trainings = day.researcher.workloads.trainings
    too_large = day.body("large", **HELLO, compute={"cpuCoreRequest": 2})
    with pytest.raises(BadRequestException, match="cpuCoreRequest"):
        trainings.create_training1(training_creation_request=too_large)
    command = {"command": "sh", "args": "-c 'echo $TEAM'"}
    made = trainings.create_training1(training_creation_request=day.body("greet", **command)).data
    day.ids["training"] = made["workloadId"]
    day.until_phase(made["workloadId"], "Completed")
    assert day.server.logs(made["workloadId"]) == "vision\n"
    shown = trainings.get_training(workload_id=made["workloadId"]).data
    assert {one["name"]: one["value"] for one in shown["spec"]["environmentVariables"]}["TEAM"] == "vision"


def test_13_workloads_of_all_kinds(day: Day) -> None:
    workloads = day.researcher.workloads
    workspace = workloads.workspaces.create_workspace1(workspace_creation_request=day.body("notebook", **SLEEP)).data
    distributed = workloads.distributed.create_distributed(
        distributed_creation_request=day.body("pair", **HELLO, numWorkers=1, distributedFramework="PyTorch")
    ).data
    serve = {"command": "python3", "args": "-m http.server 8080", "servingPort": {"container": 8080}}
    inference = workloads.inferences.create_inference1(inference_creation_request=day.body("answer", **serve)).data
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "by-manifest"},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "python:3", "command": ["echo", "job"]}],
                }
            }
        },
    }
    metadata = {"name": "by-manifest", "projectId": day.ids["project"], "clusterId": day.cluster}
    job = workloads.workloads_v2.create_workload_v2(
        workload_v2_create_request={"metadata": metadata, "manifest": manifest}
    ).data["metadata"]["id"]
    day.ids |= {"workspace": workspace["workloadId"], "inference": inference["workloadId"], "job": job}
    day.until_phase(distributed["workloadId"], "Completed")
    day.until_phase(job, "Completed")
    for name in ("workspace", "inference"):
        day.until_phase(day.ids[name], "Running")
    synced = workloads.workloads_v2.get_workload_v2_by_id(workload_v2_id=job).data["syncInfo"]
    assert synced["status"] == "Synced"
    workloads.workspaces.suspend_workspace(workload_id=day.ids["workspace"])
    day.until_phase(day.ids["workspace"], "Stopped")
    workloads.workspaces.resume_workspace(workload_id=day.ids["workspace"])
    day.until_phase(day.ids["workspace"], "Running")


def test_15_who_used_what(day: Day) -> None:
    listed = day.researcher.workloads.workloads.get_workloads(filter_by=[f"projectId=={day.ids['project']}"]).data
    assert {row["name"] for row in listed["workloads"]} == {"greet", "notebook", "pair", "answer", "by-manifest"}
    count = day.admin.workloads.workloads.count_workloads(filter_by=["phase==Running"]).data
    assert count["count"] == 2
    now = datetime.now(UTC)
    span = {"start": now - timedelta(hours=1), "end": now}
    figures = day.admin.organizations.projects.get_project_metrics(
        project_id=day.ids["project"], metric_type=["GPU_ALLOCATION"], **span
    ).data
    assert [one["type"] for one in figures["measurements"]] == ["GPU_ALLOCATION"]
    audit = day.admin.audit.audit_logs
    lines = audit.get_audit_logs(start=span["start"], end=now + timedelta(minutes=1)).data["audit_logs"]
    assert {"projects", "departments", "policies"} <= {line["entity_type"] for line in lines}
    with pytest.raises(ForbiddenException):
        day.researcher.audit.audit_logs.get_audit_logs(start=span["start"], end=now)


def test_18_everything_is_put_away(day: Day) -> None:
    workloads = day.researcher.workloads
    workloads.workspaces.delete_workspace(workload_id=day.ids["workspace"])
    workloads.inferences.delete_inference(workload_id=day.ids["inference"])
    workloads.workloads_v2.delete_workload_v2(workload_v2_id=day.ids["job"])
    units = day.admin.organizations
    day.admin.policies.policy.delete_training_policy(scope="project", project_id=day.ids["project"])
    units.projects.delete_project(project_id=day.ids["project"])
    until(
        lambda: "vision" not in [one["name"] for one in units.projects.get_projects().data["projects"]],
        "that the project is gone",
    )
    units.departments.delete_department(department_id=day.ids["department"])
    left = units.departments.get_departments().data["departments"]
    assert "research" not in [one["name"] for one in left]
