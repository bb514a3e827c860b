"""Uses the REST interface with the standard library only: log in, submit, wait, read the output.

Address and credentials come from the data folder. On another machine, fill in the address and an application.
"""

import json
import os
import time
import urllib.request
from pathlib import Path

folder = Path(os.environ.get("FAIRLEAD_DATA_DIR") or Path.home() / ".local/share/fairlead")
server = json.loads((folder / "server.json").read_text())["url"]
credentials = json.loads((folder / "credentials.json").read_text())


def call(method, path, body=None, token=None):
    request = urllib.request.Request(server + path, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
    with urllib.request.urlopen(request) as response:
        return response.read()


login = {
    "grantType": "client_credentials",
    "clientId": credentials["clientId"],
    "clientSecret": credentials["clientSecret"],
}
token = json.loads(call("POST", "/api/v1/token", login))["accessToken"]
project = json.loads(call("GET", "/api/v1/org-unit/projects", token=token))["projects"][0]

training = {
    "name": "rest",
    "useGivenNameAsPrefix": True,
    "projectId": project["id"],
    "clusterId": project["clusterId"],
    "spec": {"image": "fairlead.local/host", "command": "echo", "args": "hello over REST"},
}
workload_id = json.loads(call("POST", "/api/v1/workloads/trainings", training, token))["workloadId"]

while True:
    phase = json.loads(call("GET", f"/api/v1/workloads/{workload_id}", token=token))["phase"]
    if phase in ("Completed", "Failed"):
        break
    time.sleep(0.1)

print(phase)
print(call("GET", f"/api/v1/workloads/{workload_id}/logs", token=token).decode(), end="")
