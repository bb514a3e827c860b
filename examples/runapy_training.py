"""A script for Run:ai 2.24 with NVIDIA's own client (`pip install runapy==1.224.*`). Only the address differs."""

import json
import os
import time
from pathlib import Path

from runai import models
from runai.api_client import ApiClient
from runai.configuration import Configuration
from runai.runai_client import RunaiClient

folder = Path(os.environ.get("FAIRLEAD_DATA_DIR") or Path.home() / ".local/share/fairlead")
server = json.loads((folder / "server.json").read_text())["url"]
credentials = json.loads((folder / "credentials.json").read_text())

configuration = Configuration(
    client_id=credentials["clientId"], client_secret=credentials["clientSecret"], runai_base_url=server
)
with ApiClient(configuration) as connection:
    client = RunaiClient(connection)
    created = client.workloads.trainings.create_training1(
        training_creation_request=models.TrainingCreationRequest(
            name="runapy",
            use_given_name_as_prefix=True,
            project_id="1",
            cluster_id=credentials["clusterId"],
            spec=models.TrainingSpecSpec(image="fairlead.local/host", command="sh", args="-c 'exit 0'"),
        )
    )
    training = models.Training1.from_dict(created.data)
    while training.actual_phase not in ("Completed", "Failed"):
        time.sleep(0.1)
        answer = client.workloads.trainings.get_training(workload_id=str(training.workload_id))
        training = models.Training1.from_dict(answer.data)
    print(training.name, training.actual_phase.value)
