"""NVIDIA's own client for Run:ai 2.24, unchanged, against a real server: log in, submit, list, wait, suspend, resume,
delete, and the errors as its exceptions."""

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.server import Server, until

with warnings.catch_warnings():
    # Its sources have escape sequences that Python warns of when it compiles them for the first time.
    warnings.simplefilter("ignore")
    from runai import models
    from runai.api_client import ApiClient
    from runai.configuration import Configuration
    from runai.exceptions import BadRequestException, NotFoundException, UnauthorizedException
    from runai.runai_client import RunaiClient

FINISHED = ("Completed", "Failed")


def connect(server: Server, secret: str = "") -> ApiClient:
    credentials = server.credentials
    return ApiClient(
        Configuration(
            client_id=credentials["clientId"],
            client_secret=secret or credentials["clientSecret"],
            runai_base_url=server.url,
            # Its retries would repeat refused requests for seconds before they are raised.
            retry_enabled=False,
            logger=logging.getLogger("runapy"),
        )
    )


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[RunaiClient]:
    with connect(server) as connection:
        yield RunaiClient(connection)


def request(server: Server, name: str, command: str, args: str | None = None, **spec: Any) -> Any:
    return models.TrainingCreationRequest(
        name=name,
        project_id="1",
        cluster_id=server.credentials["clusterId"],
        spec=models.TrainingSpecSpec(image="python:3", command=command, args=args, **spec),
    )


def submit(client: RunaiClient, server: Server, name: str, command: str, args: str | None = None, **spec: Any) -> str:
    answer = client.workloads.trainings.create_training1(
        training_creation_request=request(server, name, command, args, **spec)
    )
    assert answer.status_code == 202
    created = models.Training1.from_dict(answer.data)
    assert created.requested_name == name
    assert created.desired_phase == "Running"
    return str(created.workload_id)


def phase(client: RunaiClient, workload_id: str) -> str:
    model = models.WorkloadDetailed.from_dict(client.workloads.workloads.get_workload(workload_id).data)
    return str(model.phase.value)


def wait(client: RunaiClient, workload_id: str, *phases: str) -> str:
    return str(
        until(
            lambda: (seen := phase(client, workload_id)) in phases and seen,
            f"phase {' or '.join(phases)} of {workload_id}",
        )
    )


def test_a_training_from_submission_to_its_end(client: RunaiClient, server: Server) -> None:
    workload_id = submit(
        client,
        server,
        "hello",
        "sh -c",
        "'echo $GREETING'",
        environment_variables=[models.EnvironmentVariable(name="GREETING", value="hello")],
        compute=models.SupersetSpecAllOfCompute(cpu_core_request=0.1, cpu_memory_request="10M"),
        labels=[models.Label(name="team", value="sea")],
    )
    assert wait(client, workload_id, *FINISHED) == "Completed"
    one = models.Training1.from_dict(client.workloads.trainings.get_training(workload_id).data)
    assert one.spec.labels[0].value == "sea"
    assert one.spec.compute.cpu_core_request == 0.1
    assert one.actual_phase == "Completed"
    pods = client.workloads.pods.get_workload_pods(workload_id).data["pods"]
    assert [models.Pod1.from_dict(pod).k8s_phase for pod in pods] == ["Succeeded"]
    history = client.workloads.events.get_workload_history(workload_id).data["records"]
    phases = [record["spec"]["phaseUpdate"]["phase"] for record in history if record["meta"]["type"] == "PhaseUpdate"]
    assert phases[0] == "Creating"
    assert phases[-1] == "Completed"
    assert client.workloads.events.get_workload_events(workload_id).data["events"]


def test_lists_filter_count_and_page(client: RunaiClient, server: Server) -> None:
    ids = [submit(client, server, f"listed-{number}", "true") for number in range(3)]
    for workload_id in ids:
        wait(client, workload_id, *FINISHED)
    api = client.workloads.workloads
    filters = ["name=^listed-", "phase==Completed"]
    listed = api.get_workloads(filter_by=filters, sort_by="name", sort_order="desc").data
    shown = [models.Workload.from_dict(workload) for workload in listed["workloads"]]
    assert [workload.name for workload in shown] == ["listed-2", "listed-1", "listed-0"]
    assert shown[0].type == "Training"
    assert api.count_workloads(filter_by=filters).data == {"count": 3}
    page = api.get_workloads(filter_by=filters, limit=2).data
    assert (len(page["workloads"]), page["next"]) == (2, 2)
    assert len(api.get_workloads(search="listed-1").data["workloads"]) == 1


def test_suspend_resume_and_delete(client: RunaiClient, server: Server) -> None:
    trainings = client.workloads.trainings
    workload_id = submit(client, server, "changing", "sleep", "600", termination_grace_period_seconds=0)
    wait(client, workload_id, "Running")
    accepted = {"code": 202, "message": "Request has been accepted."}
    assert trainings.suspend_training(workload_id).data == accepted
    wait(client, workload_id, "Stopped")
    assert trainings.suspend_training(workload_id).data == accepted, "asking again is accepted without effect"
    assert trainings.resume_training(workload_id).data == accepted
    wait(client, workload_id, "Running")
    assert trainings.delete_training(workload_id).data == accepted
    gone = models.Training1.from_dict(trainings.get_training(workload_id).data)
    assert gone.desired_phase == "Deleted"
    assert gone.deleted_at is not None
    with pytest.raises(NotFoundException):
        trainings.delete_training(workload_id)
    deleted = client.workloads.workloads.get_workloads(deleted=True, filter_by=["name==changing"]).data["workloads"]
    assert [workload["id"] for workload in deleted] == [workload_id]
    listed = client.workloads.workloads.get_workloads
    until(lambda: listed(filter_by=["name==changing"]).data["workloads"] == [], "the end of its pods")


def test_errors_are_the_clients_own_exceptions(client: RunaiClient, server: Server) -> None:
    body = request(server, "broken", "true").to_dict()
    body["spec"]["imagePullPolice"] = "Always"
    body["projectId"] = "99"
    with pytest.raises(BadRequestException) as refused:
        client.workloads.trainings.create_training1(training_creation_request=body)
    assert refused.value.data["message"] == "spec.imagePullPolice: is not a known property"
    issues = {issue["field"]: issue["details"] for issue in refused.value.data["complianceIssues"]}
    assert "imagePullPolicy" in issues["spec.imagePullPolice"]
    with pytest.raises(NotFoundException) as unknown:
        client.workloads.trainings.get_training("55555555-5555-4555-8555-555555555555")
    assert unknown.value.data["message"] == "Resource id not found."
    with pytest.raises(ValueError, match="Failed to get access token"):
        connect(server, secret="wrong")
    with connect(server) as stranger:
        stranger.set_default_header("authorization", "Bearer x.y.z")
        with pytest.raises(UnauthorizedException) as nobody:
            RunaiClient(stranger).workloads.workloads.get_workloads()
    assert nobody.value.data["message"] == "Issuer is not familiar."


def test_what_a_script_looks_up_first(client: RunaiClient, server: Server) -> None:
    clusters = [models.DisplayedCluster.from_dict(one) for one in client.organizations.clusters.get_clusters().data]
    assert [cluster.uuid for cluster in clusters] == [server.credentials["clusterId"]]
    assert clusters[0].status.state == "Connected"
    projects = client.organizations.projects.get_projects(filter_by=["name==default"]).data["projects"]
    # The client's class of that name describes another object; scripts use the plain data.
    assert (projects[0]["id"], projects[0]["status"]["phase"]) == ("1", "Ready")
    departments = client.organizations.departments.get_departments().data["departments"]
    assert models.DepartmentForList.from_dict(departments[0]).name == "default"
    pools = client.organizations.node_pools.get_nodepools().data["nodepools"]
    assert models.Nodepool.from_dict(pools[0]).is_default
    nodes = client.organizations.nodes.get_nodes(cluster_uuid=clusters[0].uuid).data["nodes"]
    assert models.Node.from_dict(nodes[0]).status == "Ready"
    priorities = client.workloads.workload_properties.get_workload_priorities().data["priorities"]
    assert {"low": 40, "high": 125}.items() <= {one["name"]: one["value"] for one in priorities}.items()
    types = client.workloads.workload_properties.list_workload_types().data["types"]
    assert models.WorkloadTypeConfig.from_dict(types[0]).priority_name == "low"
