"""A small institute at work: two departments, four projects, people, and a workload of every kind in every state.

The browser tests look at every view of it, and `make docs` takes its pictures of it (scripts/take_pictures.py).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.server import Server, until

NODES = """nodes:
  - {name: dgx-1, cpu: 64, memory: 512Gi, gpus: 8, gpuMemory: 80Gi, gpuModel: H100-80G, labels: {rack: r1}}
  - {name: dgx-2, cpu: 64, memory: 512Gi, gpus: 8, gpuMemory: 80Gi, gpuModel: H100-80G, labels: {rack: r1}}
  - {name: edge-1, cpu: 16, memory: 64Gi, gpus: 4, gpuMemory: 16Gi, gpuModel: T4, labels: {rack: r2, tier: edge}}
"""
HOST = "fairlead.local/host"
WAIT = "exec sleep infinity"
#: Departments with their quota, and their projects with theirs, in GPUs.
ORGANIZATION = {
    "perception": (10, {"vision": 8, "speech": 1}),
    "language": (8, {"pretraining": 5, "assistants": 3}),
}
PEOPLE = ("ada@institute.example", "grace@institute.example", "alan@institute.example")
TRAINING_LOG = r"""
printf '\033[1mepoch  step    loss  tokens/s\033[0m\n'
for step in $(seq 100 100 4000); do
  printf '%5d %5d  %6s  %8d\n' $((step / 1000)) $step $((60000 / step)).$((step % 97)) $((41000 + step % 700))
done
printf '\033[32mcheckpoint saved\033[0m at step 4000\n'
"""


class Scene(NamedTuple):
    server: Server
    #: The ids of workloads by name.
    ids: dict[str, str]


class _Builder:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.cluster = str(server.credentials["clusterId"])
        self.projects: dict[str, str] = {}
        self.departments: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    def post(self, path: str, body: dict[str, Any], method: str = "POST") -> Any:
        answer = self.server.call(method, path, body)
        assert answer.status < 300, (path, answer)
        return answer.json if answer.body else None

    def organize(self) -> None:
        self.post(
            "/api/v1/node-pools", {"name": "edge", "labelKey": "tier", "labelValue": "edge", "clusterId": self.cluster}
        )
        self.post("/api/v1/network-topologies", {"name": "racks", "clusterId": self.cluster, "levels": ["rack"]})
        pools = self.server.call("GET", "/api/v1/node-pools").json["nodepools"]

        def resources(gpus: float) -> list[dict[str, Any]]:
            quotas = {"default": gpus, "edge": 1}
            return [
                {"nodePool": {"id": pool["id"], "name": pool["name"]}, "gpu": {"deserved": quotas[pool["name"]]}}
                for pool in pools
            ]

        for department, (quota, projects) in ORGANIZATION.items():
            body = {"name": department, "clusterId": self.cluster, "resources": resources(quota)}
            self.departments[department] = str(self.post("/api/v1/org-unit/departments", body)["id"])
            for project, deserved in projects.items():
                parent = self.departments[department]
                body = {
                    "name": project,
                    "clusterId": self.cluster,
                    "parentId": parent,
                    "resources": resources(deserved),
                }
                self.projects[project] = str(self.post("/api/v1/org-unit/projects", body)["id"])

    def invite(self) -> None:
        roles = {role["name"]: role["id"] for role in self.server.call("GET", "/api/v1/authorization/roles").json}
        scopes = zip(PEOPLE, ("L1 researcher", "Department administrator", "L1 researcher"), strict=True)
        places = (("project", self.projects["vision"]), ("department", self.departments["language"]))
        for (person, role), (type, id) in zip(scopes, (*places, ("project", self.projects["speech"])), strict=True):
            self.post("/api/v1/users", {"email": person})
            rule = {"subjectId": person, "subjectType": "user", "roleId": roles[role], "scopeType": type, "scopeId": id}
            self.post("/api/v1/authorization/access-rules", rule)

    def stock(self) -> None:
        """Templates, assets, credentials, a policy, notifications that cannot be delivered."""
        tenant = {"scope": "tenant"}
        spec = {"image": HOST, "command": "python3 train.py", "compute": {"gpuDevicesRequest": 2}}
        meta = {"name": "fine-tune", "description": "Two GPUs, checkpoints every hour", "scopeType": "tenant"}
        self.post("/api/v1/workload-templates/trainings", {"meta": meta, "spec": spec})
        environment = {"meta": {"name": "pytorch-2.6", **tenant}, "spec": {"image": HOST}}
        self.post("/api/v1/asset/environment", environment)
        compute = {"meta": {"name": "two-gpus", **tenant}, "spec": {"gpuDevicesRequest": 2, "cpuCoreRequest": 8}}
        self.post("/api/v1/asset/compute", compute)
        secret = {"meta": {"name": "registry", **tenant}, "spec": {"url": "registry.institute.example"}}
        secret["spec"] |= {"user": "robot", "password": "only-an-example"}
        self.post("/api/v1/asset/credentials/docker-registry", secret)
        policy = {"defaults": {"backoffLimit": 2}, "rules": {"compute": {"gpuDevicesRequest": {"max": 8}}}}
        self.post(
            "/api/v2/policy/trainings",
            {"meta": {"name": "at most a node", "scope": "tenant"}, "policy": policy},
            "PUT",
        )
        rule = {"channel": "webhook", "target": "http://127.0.0.1:9/hook", "on": ["failed", "waiting"]}
        made = self.post("/api/v1/notification-rules", {**rule, "projectId": self.projects["vision"]})
        self.post(f"/api/v1/notification-rules/{made['id']}/test", {})

    def submit(self, kind: str, project: str, name: str, **spec: Any) -> str:
        body = {"name": name, "projectId": self.projects[project], "clusterId": self.cluster, "spec": spec}
        self.ids[name] = str(self.post(f"/api/v1/workloads/{kind}", body)["workloadId"])
        return self.ids[name]

    def training(self, project: str, name: str, gpus: float, script: str = WAIT, **more: Any) -> str:
        compute: dict[str, Any] = {"gpuDevicesRequest": gpus, "cpuCoreRequest": 1}
        if 0 < gpus < 1:
            compute = {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": gpus}
        return self.submit(
            "trainings", project, name, image=HOST, command="sh", args=f"-c '{script}'", compute=compute, **more
        )

    def work(self) -> None:
        log = TRAINING_LOG.replace("'", '"').strip() + f"\n{WAIT}"
        self.training("vision", "segment-anything-large", 4, log, **own_home(self.server.data_dir.parent))
        self.training("vision", "depth-ablation-7", 2)
        self.training("speech", "whisper-fine-tune", 2)
        for number in range(3):
            self.submit(
                "workspaces",
                "speech",
                f"notebook-{number + 1}",
                image=HOST,
                command="sh",
                args=f"-c '{WAIT}'",
                compute={"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.25},
                nodePools=["edge"],
            )
        gang = {"image": HOST, "command": "sh", "args": f"-c '{WAIT}'", "compute": {"gpuDevicesRequest": 1}}
        self.submit(
            "distributed", "pretraining", "llama-pretraining", numWorkers=3, distributedFramework="PyTorch", **gang
        )
        serving = {"image": HOST, "command": "python3 -m http.server 8080", "servingPort": {"container": 8080}}
        self.submit("inferences", "assistants", "chat", **serving, compute={"gpuDevicesRequest": 1})
        role = {"image": HOST, "command": "sleep infinity", "compute": {"gpuDevicesRequest": 1}}
        self.submit(
            "distributed-inferences", "assistants", "mixtral-serving", leader=role, worker=role, workers=1, replicas=1
        )
        for id in self.ids.values():
            self.server.until_phase(id, "Running")
        self.training("vision", "depth-ablation-6", 0, "echo done")
        self.training("pretraining", "tokenizer", 0, "echo cannot read the corpus >&2; exit 3", backoffLimit=0)
        self.training("vision", "diffusion-upscaler", 8)
        self.training("pretraining", "instruction-tuning", 4)
        self.submit(
            "distributed", "pretraining", "mixture-of-experts", numWorkers=7, distributedFramework="PyTorch", **gang
        )
        for name, phase in (
            ("depth-ablation-6", "Completed"),
            ("tokenizer", "Failed"),
            ("diffusion-upscaler", "Pending"),
        ):
            self.server.until_phase(self.ids[name], phase)


def own_home(folder: Path) -> dict[str, Any]:
    """Part of a spec: shells in its pods read no start files, which may take long on a developer's machine."""
    return {"environmentVariables": [{"name": "HOME", "value": str(folder)}]}


@contextlib.contextmanager
def institute(folder: Path) -> Iterator[Scene]:
    folder.mkdir(parents=True, exist_ok=True)
    nodes = folder / "nodes.yaml"
    nodes.write_text(NODES)
    flags = ("--personal", "--nodes", str(nodes), "--notify-allow", "127.0.0.1")
    server = Server(folder / "data", *flags).start()
    try:
        builder = _Builder(server)
        builder.organize()
        builder.invite()
        builder.stock()
        builder.work()
        errors = "/api/v1/notification-rules/errors"
        until(lambda: server.call("GET", errors).json["deliveries"], "a delivery that failed")
        yield Scene(server, builder.ids)
    finally:
        server.close()
