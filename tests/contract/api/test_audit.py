"""The audit over REST: changes, refusals and sign-ins, with who, from where and what changed; and as files."""

import csv
import io
import json
from typing import Any
from urllib.parse import urlencode

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer

PATH = "/api/v1/audit/log"
PERIOD = {"start": "2000-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}


def read(api: ApiServer, path: str = PATH, **query: Any) -> Answer:
    return api.call("GET", f"{path}?{urlencode(PERIOD | query)}")


def lines(api: ApiServer, *filters: str) -> list[Any]:
    answer = read(api, filterBy=",".join(filters), sortOrder="desc", numberOfSamples=100)
    assert answer.status == 200, answer
    assert find_disagreements("get", PATH, 200, answer.json) == []
    found: list[Any] = answer.json["audit_logs"]
    return found


def flushed(api: ApiServer) -> None:
    api.do(api.application.close())


def test_a_change_is_recorded_with_its_values_before_and_after(api: ApiServer) -> None:
    project = api.call("GET", "/api/v1/org-unit/projects/1").json
    body = {"description": "for the audit", "resources": project["resources"]}
    assert api.call("PUT", "/api/v1/org-unit/projects/1", body).status == 200
    line = lines(api, "entity_type==projects", "action==update")[0]
    assert (line["subject"], line["subject_type"], line["result"]) == ("fairlead", "App", "Succeeded")
    assert (line["source_ip"], line["http_method"]) == ("127.0.0.1", "PUT")
    assert line["url"].endswith("/api/v1/org-unit/projects/1")
    assert line["entity_name"] == project["name"]
    assert "for the audit" in line["metadata"]["changes"]


def test_a_new_and_a_deleted_record_are_recorded_with_their_values_but_no_secrets(api: ApiServer) -> None:
    variables = [{"name": "TOKEN", "value": "a-secret"}]
    body = {"meta": {"name": "env", "scope": "tenant"}, "spec": {"image": "x", "environmentVariables": variables}}
    id = api.call("POST", "/api/v1/asset/environment", body).json["meta"]["id"]
    body = {"meta": {"name": "env"}, "spec": {"image": "y", "environmentVariables": variables}}
    assert api.call("PUT", f"/api/v1/asset/environment/{id}", body).status == 202
    assert api.call("DELETE", f"/api/v1/asset/environment/{id}").status == 202
    deleted, updated, made = lines(api, f"entity_id=={id}")
    assert [one["entity_name"] for one in (deleted, updated, made)] == ["env", "env", "env"]
    assert json.loads(updated["metadata"]["changes"]) == {"spec.image": ["x", "y"]}
    assert json.loads(made["metadata"]["changes"])["spec.image"] == [None, "x"]
    assert json.loads(deleted["metadata"]["changes"])["spec.environmentVariables"] == [["TOKEN"], None]
    assert b"a-secret" not in read(api, numberOfSamples=100).body


def test_accounts_in_urls_are_not_recorded(api: ApiServer) -> None:
    source = {"repository": "https://ann:url-secret@example.com/x.git", "path": "/x"}
    scope = {"scopeType": "tenant", "scopeId": api.get("/api/v1/clusters")[0]["tenantId"]}
    meta = {"name": "in-a-url", "scope": "tenant"}
    made = api.call("POST", "/api/v1/asset/datasource/git", {"meta": meta, "spec": source})
    assert made.status == 202, made
    git = [{"name": "x", **source}]
    body = {
        "meta": {"name": "in-a-url", **scope, "scopeId": str(scope["scopeId"])},
        "spec": {"image": "x", "storage": {"git": git}},
    }
    assert api.call("POST", "/api/v1/workload-templates/trainings", body).status == 202
    policy = {"defaults": {"storage": {"git": {"instances": git}}}}
    put = api.call(
        "PUT", "/api/v2/policy/trainings", {"meta": {"name": "in-a-url", "scope": "tenant"}, "policy": policy}
    )
    assert put.status == 200, put
    assert api.call("DELETE", "/api/v2/policy/trainings?scope=tenant").status == 204
    found = lines(api, "entity_name==in-a-url")
    assert len(found) >= 3
    assert all("https://***@example.com/x.git" in one["metadata"]["changes"] for one in found)
    assert "url-secret" not in json.dumps(found)


def test_a_submission_is_recorded_by_name(api: ApiServer) -> None:
    body = {"name": "audited", "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "x"}}
    id = api.call("POST", "/api/v1/workloads/trainings", body).json["workloadId"]
    [line] = lines(api, "entity_name==audited")
    assert (line["action"], line["entity_type"], line["entity_id"]) == ("create", "workloads", id)
    api.call("POST", f"/api/v1/workloads/trainings/{id}/suspend")
    suspended = lines(api, "entity_name==audited", "action==update")[0]
    assert suspended["metadata"]["operation"] == "suspend"


def test_a_changed_workload_is_recorded_without_the_values_of_variables(api: ApiServer) -> None:
    spec: dict[str, Any] = {"image": "x", "servingPort": {"container": 8000}, "workingDir": "/a"}
    variables = [{"name": "TOKEN", "value": "first-secret"}]
    body = {"name": "served", "projectId": "1", "clusterId": api.cluster_id, "useGivenNameAsPrefix": False}
    path = "/api/v1/workloads/inferences"
    made = api.call("POST", path, {**body, "spec": {**spec, "environmentVariables": variables}})
    assert made.status == 202, made
    change = {"image": "y", "environmentVariables": [{"name": "TOKEN", "value": "second-secret"}]}
    answer = api.call("PATCH", f"{path}/{made.json['workloadId']}", {"spec": change})
    assert answer.status == 202, answer
    changes = json.loads(lines(api, "entity_name==served", "action==update")[0]["metadata"]["changes"])
    assert changes == {"image": ["x", "y"], "environmentVariables": [["TOKEN"], ["TOKEN"]]}
    assert b"-secret" not in read(api, numberOfSamples=100).body


def test_a_refusal_is_recorded_with_its_status(api: ApiServer) -> None:
    assert api.call("POST", "/api/v1/workloads/trainings", {"name": "X"}).status == 400
    flushed(api)
    line = lines(api, "result==Failed", "url=$trainings")[0]
    assert (line["http_status_code"], line["subject"]) == (400, "fairlead")


def test_a_check_that_finds_mistakes_is_not_recorded_as_a_refusal(api: ApiServer) -> None:
    flushed(api)
    before = len(lines(api, "result==Failed"))
    for query in ("dryRun=plan", "dryRun=false"):
        assert api.call("POST", f"/api/v1/workloads/trainings?{query}", {"name": "X"}).status == 400
    for path in ("conversions", "scheduling/what-if"):
        assert api.call("POST", f"/api/v1/{path}", {"text": 3}).status == 400
    # An operation that knows no dry run cannot be hidden by the parameter.
    assert api.call("POST", "/api/v1/users?dryRun=true", {"email": 3}).status == 400
    flushed(api)
    assert len(lines(api, "result==Failed")) - before == 2


def test_sign_ins_are_recorded_and_secrets_are_not(api: ApiServer) -> None:
    api.log_in()
    body = {"grantType": "password", "username": "ann@example.com", "password": "guessed-wrongly"}
    assert api.call("POST", "/api/v1/token", body, token="").status == 400
    flushed(api)
    good, bad = (
        lines(api, "action==sign-in", "result==Succeeded")[0],
        lines(api, "result==Failed", "action==sign-in")[0],
    )
    assert good["subject"] == "fairlead"
    assert bad["subject"] == "ann@example.com"
    assert "guessed-wrongly" not in read(api, numberOfSamples=1000).body.decode()


def test_a_session_is_recorded_by_the_name_of_its_workload(api: ApiServer) -> None:
    id = api.submit("entered")
    for path in ("exec?command=id", "attach", "port-forward?port=80"):
        assert api.call("POST", f"/api/v1/workloads/{id}/{path}").status >= 400, "nothing runs here"
    flushed(api)
    found = {(line["metadata"]["operation"], line["entity_type"]) for line in lines(api, "entity_name==entered")}
    sessions = {"execute_in_workload", "attach_to_workload", "forward_port_of_workload"}
    assert found == {("create", "workloads"), *((operation, "workloads") for operation in sessions)}


def test_requests_without_an_account_do_not_fill_it(api: ApiServer) -> None:
    flushed(api)
    before = read(api).json["total"]
    assert api.call("POST", "/api/v1/workloads/trainings", {"name": "X"}, token="").status == 401
    flushed(api)
    assert read(api).json["total"] == before


def test_pages_and_files(api: ApiServer) -> None:
    for _ in range(3):
        api.log_in()
    flushed(api)
    first = read(api, numberOfSamples=2).json
    assert (len(first["audit_logs"]), first["next"]) == (2, 2)
    assert first["total"] > 2
    table = list(csv.DictReader(io.StringIO(read(api, f"{PATH}/file").body.decode())))
    assert len(table) == first["total"]
    assert table[0]["id"] == first["audit_logs"][0]["id"]
    assert len(read(api, f"{PATH}/file", file_type="JSON", numberOfSamples=1).json) == 1


def test_only_administrators_read_it_and_bad_periods_are_refused(api: ApiServer) -> None:
    assert api.call("GET", PATH).status == 400
    assert read(api, start="yesterday").status == 400
    assert api.call("GET", f"{PATH}?{urlencode(PERIOD)}", token="").status == 401


def test_the_name_of_a_cluster_is_a_filter(api: ApiServer) -> None:
    project = api.call("GET", "/api/v1/org-unit/projects/1").json
    body = {"description": "for the filter", "resources": project["resources"]}
    assert api.call("PUT", "/api/v1/org-unit/projects/1", body).status == 200
    name = lines(api)[0]["cluster_name"]
    assert lines(api, "entity_type==projects", f"cluster_name=={name}") == lines(api, "entity_type==projects")
    assert lines(api, f"cluster_name!={name}") == lines(api, "cluster_name=^no-such") == []
