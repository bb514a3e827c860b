"""Uses Fairlead's Python client: submit a training, watch its changes, read its output."""

import json
import os
from pathlib import Path

from fairlead.client import Client, application

folder = Path(os.environ.get("FAIRLEAD_DATA_DIR") or Path.home() / ".local/share/fairlead")
server = json.loads((folder / "server.json").read_text())["url"]
credentials = json.loads((folder / "credentials.json").read_text())

with Client(server, credentials=application(credentials["clientId"], credentials["clientSecret"])) as client:
    [project] = client.projects(filterBy=["name==default"])
    # Start the watch before the submission, so that no change is missed.
    watch = client.watch(projectId=project["id"])
    created = client.trainings.submit(
        {
            "name": "sdk",
            "useGivenNameAsPrefix": True,
            "projectId": project["id"],
            "clusterId": project["clusterId"],
            "spec": {"image": "fairlead.local/host", "command": "echo", "args": "hello from the SDK"},
        }
    )
    for change in watch.changes():
        if change and change["workloadId"] == created["workloadId"]:
            print(change["workload"]["phase"])
            if change["workload"]["phase"] in ("Completed", "Failed"):
                break
    watch.close()
    for piece in client.logs(created["workloadId"]):
        print(piece.decode(), end="")
