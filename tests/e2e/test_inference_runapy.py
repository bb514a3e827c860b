"""NVIDIA's own client, unchanged, with services: submit, change, revisions, their pods and events, figures, delete."""

import logging
import os
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.server import Server, until
from tests.e2e.serving import ask, spec_of, url_of

with warnings.catch_warnings():
    # Its sources have escape sequences that Python warns of when it compiles them for the first time.
    warnings.simplefilter("ignore")
    from runai import models
    from runai.api.inferences_api import InferencesApi
    from runai.api.nodes_api import NodesApi
    from runai.api.revisions_api import RevisionsApi
    from runai.api.workloads_api import WorkloadsApi
    from runai.api_client import ApiClient
    from runai.configuration import Configuration


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[ApiClient]:
    settings = Configuration(
        client_id=server.credentials["clientId"],
        client_secret=server.credentials["clientSecret"],
        runai_base_url=server.url,
        retry_enabled=False,
        logger=logging.getLogger("runapy"),
    )
    with ApiClient(settings) as connected:
        yield connected


@pytest.mark.skipif(os.geteuid() != 0, reason="two revisions on one port need networks of their own, which need root")
def test_a_service_from_submission_to_its_end(server: Server, connection: ApiClient, tmp_path: Path) -> None:
    services, revisions = InferencesApi(connection), RevisionsApi(connection)
    spec = spec_of(tmp_path, 8300, autoscaling={"minReplicas": 1, "maxReplicas": 1})
    request = models.InferenceCreationRequest.from_dict(
        {"name": "theirs", "projectId": "1", "clusterId": server.credentials["clusterId"], "spec": spec}
    )
    created = services.create_inference1(inference_creation_request=request)
    assert created.status_code == 202
    workload_id = created.data["workloadId"]
    server.until_phase(workload_id, "Running")
    url = url_of(server, workload_id)
    assert ask(url)["version"] == "1"
    wanted = {"spec": {"environmentVariables": [{"name": "VERSION", "value": "2"}]}}
    change = models.InferenceUpdateRequest.from_dict(wanted)
    assert services.update_inference_spec(workload_id, inference_update_request=change).status_code == 202
    until(lambda: ask(url)["version"] == "2", "the update")
    found = revisions.get_inference_workload_revisions(workload_id).data["revisions"]
    shown = [models.Revision.from_dict(each) for each in found]
    assert [each.name for each in shown] == ["theirs-00001", "theirs-00002"]
    assert revisions.count_inference_workload_revisions(workload_id).data == {"count": 2}
    assert revisions.get_revision(shown[1].id).data["phase"] == "Running"
    now = datetime.now(UTC)
    span = {"start": now - timedelta(minutes=1), "end": now, "number_of_samples": 5}
    figures = services.get_inference_workload_metrics(workload_id, metric_type=["THROUGHPUT", "LATENCY"], **span)
    assert [each["type"] for each in figures.data["measurements"]] == ["THROUGHPUT", "LATENCY"]
    figures = WorkloadsApi(connection).get_workload_metrics(workload_id, metric_type=["POD_COUNT"], **span)
    assert figures.data["measurements"][0]["values"][-1]["value"] in ("1", "2")
    counted = WorkloadsApi(connection).get_workloads_telemetry(telemetry_type="WORKLOADS_COUNT", group_by=["Type"])
    assert {"key": "Type", "value": "Inference"} in counted.data["values"][0]["groups"]
    assert NodesApi(connection).get_node_telemetry(telemetry_type="TOTAL_CPU_CORES").data["values"]
    assert services.delete_inference(workload_id).status_code == 202
    until(lambda: server.workload(workload_id)["runningPods"] == 0, "its end")
