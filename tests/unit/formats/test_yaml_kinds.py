"""What single kinds of workload YAML have of their own: distributed, interactive and inference workloads."""

from typing import Any

import pytest

from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.fields import kinds_with, yaml_fields
from fairlead.kinds import KINDS
from tests.unit.formats.yaml_texts import document, issues_of, rest, workload

TRAINING, INTERACTIVE = "TrainingWorkload", "InteractiveWorkload"
DISTRIBUTED, INFERENCE = "DistributedWorkload", "InferenceWorkload"
#: What an inference has when nothing is said of how many pods there are, with and without a serving port.
ONE = {"autoscaling": {"minReplicas": 1, "maxReplicas": 1}}
SLEEPS = {"autoscaling": {"minReplicas": 0, "maxReplicas": 1}}
#: By kind: what is written, and what it is in REST.
CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    (DISTRIBUTED, "jobType", "jobType: {value: XGBoost}", {"distributedFramework": "XGBoost"}),
    (DISTRIBUTED, "jobType as Kubeflow's kind", "jobType: {value: pytorchjob}", {"distributedFramework": "PyTorch"}),
    (DISTRIBUTED, "jobType TensorFlow", "jobType: {value: TensorFlow}", {"distributedFramework": "TF"}),
    (DISTRIBUTED, "workers", "workers: {value: 3}", {"numWorkers": 3}),
    (DISTRIBUTED, "slotsPerWorker", "slotsPerWorker: {value: 2}", {"slotsPerWorker": 2}),
    (DISTRIBUTED, "noMaster", "noMaster: {value: true}", {"masterSpecSameAsWorker": False}),
    (DISTRIBUTED, "a master as always", "noMaster: {value: false}", {}),
    (DISTRIBUTED, "nonPreemptible", "nonPreemptible: {value: true}", {"preemptibility": "non-preemptible"}),
    (DISTRIBUTED, "mpi", "mpi: {value: true}", {"distributedFramework": "MPI"}),
    (DISTRIBUTED, "mpi as an object", "mpi: {}", {"distributedFramework": "MPI"}),
    (DISTRIBUTED, "no mpi", "mpi: {value: false}", {}),
    (DISTRIBUTED, "processes", "processes: {value: 4}", {"distributedFramework": "MPI", "numWorkers": 4}),
    (
        DISTRIBUTED,
        "processes in slots",
        "processes: {value: 5}\nslotsPerWorker: {value: 2}",
        {"distributedFramework": "MPI", "numWorkers": 3, "slotsPerWorker": 2},
    ),
    (
        DISTRIBUTED,
        "mpiJob",
        "mpiJob: {value: {slotsPerWorker: 2, sshAuthMountPath: /k, launcherCreationPolicy: WaitForWorkersReady}}",
        {
            "distributedFramework": "MPI",
            "slotsPerWorker": 2,
            "sshAuthMountPath": "/k",
            "mpiLauncherCreationPolicy": "WaitForWorkersReady",
        },
    ),
    (
        DISTRIBUTED,
        "pyTorchJob",
        "workers: {value: 2}\npyTorchJob: {value: {elasticPolicy: {minReplicas: 1, maxReplicas: 4}}}",
        {"numWorkers": 2, "minReplicas": 1, "maxReplicas": 4},
    ),
    (
        DISTRIBUTED,
        "runPolicy",
        "runPolicy: {value: {cleanPodPolicy: All, backoffLimit: 2, ttlSecondsAfterFinished: 60}}",
        {"cleanPodPolicy": "All", "backoffLimit": 2, "autoDeletionTimeAfterCompletionSeconds": 60},
    ),
    (
        DISTRIBUTED,
        "podAffinity, which can say no more here",
        "podAffinity: {value: true}",
        {"podAffinity": {"type": "Preferred", "key": "kubernetes.io/hostname"}},
    ),
    (INTERACTIVE, "preemptible", "preemptible: {value: true}", {"preemptibility": "preemptible"}),
    (INTERACTIVE, "not preemptible", "preemptible: {value: false}", {"preemptibility": "non-preemptible"}),
    (
        INTERACTIVE,
        "jupyter",
        "jupyter: {value: true}\nnotebookToken: {value: it's}",
        {
            "command": "start-notebook.sh",
            "args": "'--NotebookApp.token=it'\"'\"'s'",
            "exposedUrls": [{"name": "jupyter", "container": 8888, "toolType": "jupyter-notebook"}],
        },
    ),
    (
        INTERACTIVE,
        "jupyter with a command and a port of its own",
        "jupyter: {value: true}\ncommand: {value: lab}\nexposedUrls: {items: {u: {value: {container: 8888}}}}",
        {"command": "lab", "exposedUrls": [{"name": "u", "container": 8888}]},
    ),
    (
        INTERACTIVE,
        "tensorboard",
        "tensorboard: {value: true}\ntensorboardLogdir: {value: /runs}",
        {
            "command": "tensorboard",
            "args": "--logdir=/runs --bind_all --port=6006",
            "exposedUrls": [{"name": "tensorboard", "container": 6006, "toolType": "tensorboard"}],
            "environmentVariables": [{"name": "TENSORBOARD_LOGDIR", "value": "/runs"}],
        },
    ),
    (INFERENCE, "nothing", "", ONE),
    (
        INFERENCE,
        "a port that says nothing is served on",
        "ports: {items: {p: {value: {container: 8000}}}}",
        {"servingPort": {"container": 8000}, **SLEEPS},
    ),
    (
        INFERENCE,
        "ServingPort",
        "ports: {items: {a: {value: {container: 1}}, "
        "b: {value: {container: 2, serviceType: ServingPort, protocol: grpc}}}}\nisPrivateServiceUrl: {value: true}",
        {
            "ports": [{"name": "a", "container": 1, "serviceType": "ClusterIP"}],
            "servingPort": {"container": 2, "protocol": "grpc", "clusterLocalAccessOnly": True},
            **SLEEPS,
        },
    ),
    (
        INFERENCE,
        "a service type of the spec counts",
        "ports: {items: {a: {value: {container: 1}}}}\nserviceType: {value: NodePort}",
        {"ports": [{"name": "a", "container": 1, "serviceType": "NodePort"}], **ONE},
    ),
    (
        INFERENCE,
        "scale and target",
        "minScale: {value: 1}\nmaxScale: {value: 2}\nmetric: {value: concurrency}\ntarget: {value: 80}",
        {"autoscaling": {"minReplicas": 1, "maxReplicas": 2, "metric": "concurrency", "metricThreshold": 80}},
    ),
    (
        INFERENCE,
        "a metric as it is without",
        "maxScale: {value: 3}",
        {"autoscaling": {"minReplicas": 1, "maxReplicas": 3, "metric": "concurrency", "metricThreshold": 100}},
    ),
    (
        INFERENCE,
        "throughput",
        "metric: {value: Throughput}",
        {"autoscaling": {"minReplicas": 1, "maxReplicas": 1, "metric": "throughput", "metricThreshold": 200}},
    ),
    (
        INFERENCE,
        "more pods at least than the usual most",
        "minScale: {value: 2}",
        {"autoscaling": {"minReplicas": 2, "maxReplicas": 2}},
    ),
    (
        INFERENCE,
        "class",
        "class: {value: kpa}",
        {"annotations": [{"name": "autoscaling.knative.dev/class", "value": "kpa"}], **ONE},
    ),
    (
        INFERENCE,
        "fields that its REST object has not",
        "hostipc: {value: true}",
        {"security": {"hostIpc": True}, **ONE},
    ),
    (
        TRAINING,
        "a port behind a URL",
        "ports: {items: {a: {value: {container: 1, serviceType: ExternalUrl, toolName: t}},"
        " b: {value: {container: 2}}}}",
        {
            "exposedUrls": [{"name": "a", "container": 1, "toolName": "t"}],
            "ports": [{"name": "b", "container": 2, "serviceType": "ClusterIP"}],
        },
    ),
]


@pytest.mark.parametrize(
    ("kind", "written", "want_rest"),
    [pytest.param(kind, written, want, id=f"{kind}: {name}") for kind, name, written, want in CASES],
)
def test_read(kind: str, written: str, want_rest: dict[str, Any]) -> None:
    assert rest(written, kind) == want_rest


def test_images_of_tools_are_filled_in() -> None:
    for tool, want_image in (("jupyter", "jupyter/scipy-notebook"), ("tensorboard", "tensorflow/tensorflow")):
        text = document(f"name: {{value: x}}\n{tool}: {{value: true}}", INTERACTIVE)
        found, issues = read_workload(read_manifests(text)[0][0])
        assert issues == []
        assert found is not None
        assert found.plain["image"] == want_image


def test_a_training_with_mpi_is_a_distributed_workload() -> None:
    found = workload("processes: {value: 4}\nslotsPerWorker: {value: 2}\nterminateAfterPreemption: {value: true}")
    assert found.kind is KINDS["distributed-training"]
    assert {name: value for name, value in found.plain.items() if name != "image"} == {
        "distributedFramework": "MPI",
        "numWorkers": 2,
        "slotsPerWorker": 2,
        "terminateAfterPreemption": True,
    }
    assert [path for path, _ in found.remarks] == ["kind"]
    assert found.kind.podsets(found.spec)[0].role == "launcher"


def test_a_training_without_mpi_stays_one() -> None:
    assert workload("mpi: {value: false}").kind is KINDS["training"]


@pytest.mark.parametrize(
    ("kind", "spec", "want_path", "want_words"),
    [
        pytest.param(TRAINING, "workers: {value: 2}", "spec.workers", "belongs to DistributedWorkload", id="workers"),
        pytest.param(DISTRIBUTED, "minScale: {value: 2}", "spec.minScale", "belongs to Inference", id="minScale"),
        pytest.param(INFERENCE, "jupyter: {value: true}", "spec.jupyter", "belongs to Interactive", id="jupyter"),
        pytest.param(
            TRAINING,
            "mpi: {value: true}\nname: {value: x}\ncompletions: {value: 2}",
            "spec.completions",
            "together with mpi",
            id="completions of MPI",
        ),
        pytest.param(
            DISTRIBUTED,
            "jobType: {value: TF}\nmpiJob: {value: {slotsPerWorker: 2}}",
            "spec.mpiJob",
            "jobType is TF",
            id="two frameworks",
        ),
        pytest.param(
            DISTRIBUTED,
            "jobType: {value: MPI}\npyTorchJob: {value: {elasticPolicy: {minReplicas: 1}}}",
            "spec.pyTorchJob",
            "job of MPI",
            id="PyTorch's settings for MPI",
        ),
        pytest.param(
            DISTRIBUTED, "runPolicy: {value: {suspend: true}}", "spec.runPolicy", "the members are", id="unknown member"
        ),
        pytest.param(
            DISTRIBUTED,
            "workers: {value: 2}\nprocesses: {value: 3}",
            "spec.processes",
            "is 3, and workers",
            id="two counts",
        ),
        pytest.param(DISTRIBUTED, "processes: {value: 0}", "spec.processes", "at least 1", id="no process"),
        pytest.param(INFERENCE, "metric: {value: custom}", "spec.metric", "metricName is missing", id="nameless"),
        pytest.param(INFERENCE, "metricName: {value: m}", "spec.metricName", "only with metric", id="name alone"),
        pytest.param(
            INFERENCE, "metric: {value: latency}", "spec.target", "metric needs it", id="latency without a target"
        ),
        pytest.param(INFERENCE, "metric: {value: gpu-utilization}", "spec.metric", "use one of", id="unmeasured"),
        pytest.param(
            INFERENCE,
            "minScale: {value: 3}\nmaxScale: {value: 2}",
            "spec.maxScale",
            "below minScale",
            id="bounds crossed",
        ),
        pytest.param(
            INFERENCE, "isPrivateServiceUrl: {value: true}", "spec.isPrivateServiceUrl", "ServingPort", id="no port"
        ),
        pytest.param(
            TRAINING,
            "ports: {items: {a: {value: {container: 1, serviceType: ServingPort}}}}",
            "spec.ports",
            "inference workload",
            id="a training serves nothing",
        ),
        pytest.param(
            INFERENCE,
            "ports: {items: {a: {value: {container: 70000, serviceType: ServingPort}}}}",
            "spec.ports.items.a.value.container",
            "at most 65535",
            id="the place of what was moved",
        ),
        pytest.param(
            TRAINING,
            "ports: {items: {a: {value: {container: 1, serviceType: ExternalUrl}}, b: {value: {container: 70000}}}}",
            "spec.ports.items.b.value.container",
            "at most 65535",
            id="the place of what was behind it",
        ),
    ],
)
def test_refusals(kind: str, spec: str, want_path: str, want_words: str) -> None:
    found = [issue for issue in issues_of(document(spec, kind)) if issue.path == want_path]
    assert len(found) == 1, issues_of(document(spec, kind))
    assert want_words in found[0].details


def test_a_label_that_says_otherwise_than_the_spec_is_refused() -> None:
    text = document("name: {value: x}\nimage: {value: i}\npreemptible: {value: true}", INTERACTIVE)
    text = text.replace("name: x,", "name: x, labels: {kai.scheduler/preemptibility: non-preemptible},")
    [issue] = issues_of(text)
    assert issue.path == "metadata.labels.kai.scheduler/preemptibility"


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.letter], ids=lambda kind: kind.resource)
def test_a_field_of_a_kind_is_never_refused_as_another_kinds(kind: Any) -> None:
    for name, field in yaml_fields(kind).items():
        if kind.letter in field.kinds:
            assert kind.letter in kinds_with(name)
            details = [issue.details for issue in issues_of(document(f"{name}: {{value: x}}", kind.resource))]
            assert not [words for words in details if "is no field" in words], name


@pytest.mark.parametrize(
    ("field", "member", "credentials", "want_values"),
    [
        pytest.param(
            "gitSync: {items: {g: {value: {repository: https://x/r, path: /p, username: u, password: top}}}}",
            "git",
            {"secretRef": {"name": "x-g"}},
            {"User": "u", "Password": "top"},
            id="git",
        ),
        pytest.param(
            "s3: {items: {Data_1: {value: {bucket: b, path: /p, key: i, secret: top}}}}",
            "s3",
            {"accessKeySecret": "x-data-1"},
            {"AccessKeyId": "i", "SecretKey": "top"},
            id="s3",
        ),
    ],
)
def test_plain_credentials_leave_the_spec(
    field: str, member: str, credentials: dict[str, Any], want_values: dict[str, str]
) -> None:
    found = workload(field)
    [item] = found.plain["storage"][member]
    assert credentials.items() <= item.items()
    assert "top" not in str(found.plain)
    [secret] = found.secrets
    assert secret.values == want_values
    assert all(path.startswith(f"spec.{field.split(':')[0]}.items.") for path in secret.paths)


def test_templates_take_no_plain_credentials() -> None:
    given = "repository: https://x/r, path: /p, username: u, password: x"
    issues = issues_of(document(f"usage: Template\ngitSync: {{items: {{g: {{value: {{{given}}}}}}}}}"))
    assert {issue.path for issue in issues} == {f"spec.gitSync.items.g.value.{one}" for one in ("username", "password")}
