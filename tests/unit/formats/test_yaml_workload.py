"""Workload YAML read into the model: every field, every accepted spelling, every refusal."""

import time
from typing import Any

import pytest

from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.fields import yaml_fields
from fairlead.kinds import KINDS
from tests.unit.formats.yaml_texts import document, issues_of, rest, workload

TRAINING = KINDS["training"]
#: By field of a training: one way to write it, and what it is in REST.
FIELDS: list[tuple[str, str, dict[str, Any]]] = [
    ("allowPrivilegeEscalation", "{value: false}", {"security": {"allowPrivilegeEscalation": False}}),
    ("annotations", "{items: {a: {value: b}}}", {"annotations": [{"name": "a", "value": "b"}]}),
    ("arguments", "{value: -x 1}", {"args": "-x 1"}),
    (
        "autoDeletionTimeAfterCompletionSeconds",
        "{value: 0}",
        {"autoDeletionTimeAfterCompletionSeconds": 0},
    ),
    ("backoffLimit", "{value: 3}", {"backoffLimit": 3}),
    ("capabilities", "{items: {c: {value: {capability: CHOWN}}}}", {"security": {"capabilities": ["CHOWN"]}}),
    ("command", "{value: python train.py}", {"command": "python train.py"}),
    ("completions", "{value: 4}", {"completions": 4}),
    (
        "configMapVolumes",
        "{items: {v: {value: {name: cm, mountPath: /c, subPath: f}}}}",
        {"storage": {"configMapVolume": [{"name": "v", "configMap": "cm", "mountPath": "/c", "subPath": "f"}]}},
    ),
    ("cpu", "{value: 0.5}", {"compute": {"cpuCoreRequest": 0.5}}),
    ("cpuLimit", '{value: "2"}', {"compute": {"cpuCoreLimit": 2}}),
    ("createHomeDir", "{value: true}", {"createHomeDir": True}),
    ("dropAllCapabilities", "{value: true}", {"security": {"dropAllCapabilities": True}}),
    ("environment", "{items: {A: {value: 1}}}", {"environmentVariables": [{"name": "A", "value": "1"}]}),
    (
        "exposedUrls",
        "{items: {u: {value: {container: 80, authorizedUsers: [ann, bob], toolType: t}}}}",
        {"exposedUrls": [{"name": "u", "container": 80, "authorizedUsers": ["ann", "bob"], "toolType": "t"}]},
    ),
    (
        "extendedResources",
        "{items: {r: {value: {name: ext/a, quantity: 5}}}}",
        {"compute": {"extendedResources": [{"resource": "ext/a", "quantity": "5"}]}},
    ),
    (
        "gitSync",
        "{items: {g: {value: {repository: https://x, directory: /d, branch: b, rev: v, secretName: s, username: u}}}}",
        {
            "storage": {
                "git": [
                    {
                        "name": "g",
                        "repository": "https://x",
                        "path": "/d",
                        "branch": "b",
                        "revision": "v",
                        "secretRef": {"name": "s", "secretKeyOfUser": "u"},
                    }
                ]
            }
        },
    ),
    ("gpu", '{value: "0.5"}', {"compute": {"gpuPortionRequest": 0.5, "gpuRequestType": "portion"}}),
    ("gpuDevices", "{value: 2}", {"compute": {"gpuDevicesRequest": 2}}),
    ("gpuMemory", "{value: 20M}", {"compute": {"gpuMemoryRequest": "20M", "gpuRequestType": "memory"}}),
    ("hostIpc", "{value: true}", {"security": {"hostIpc": True}}),
    ("hostNetwork", "{value: true}", {"security": {"hostNetwork": True}}),
    ("imagePullPolicy", "{value: ifNotPresent}", {"imagePullPolicy": "IfNotPresent"}),
    ("labels", "{items: {PROJECT: {value: TEST}}}", {"labels": [{"name": "PROJECT", "value": "TEST"}]}),
    ("largeShm", "{value: true}", {"compute": {"largeShmRequest": True}}),
    ("memory", "{value: 1G}", {"compute": {"cpuMemoryRequest": "1G"}}),
    ("memoryLimit", "{value: 2G}", {"compute": {"cpuMemoryLimit": "2G"}}),
    ("migProfile", "{value: 1g.5gb}", {"compute": {"migProfile": "1g.5gb"}}),
    (
        "nfs",
        "{items: {n: {value: {sourcePath: /s, nfsServer: h, targetPath: /t, readOnly: false}}}}",
        {"storage": {"nfs": [{"name": "n", "path": "/s", "server": "h", "mountPath": "/t", "readOnly": False}]}},
    ),
    ("nodePool", "{value: a}", {"nodePools": ["a"]}),
    ("nodePools", "{value: a b}", {"nodePools": ["a", "b"]}),
    ("nodeType", "{value: a100}", {"nodeType": "a100"}),
    ("parallelism", "{value: 1}", {"parallelism": 1}),
    (
        "ports",
        "{items: {p: {value: {container: 80, external: 30080, serviceType: NodePort}}}}",
        {"ports": [{"name": "p", "container": 80, "external": 30080, "serviceType": "NodePort"}]},
    ),
    ("preemptionLimit", "{value: 2}", {"preemptionLimit": 2}),
    (
        "pvcs",
        "{items: {p: {value: {claimName: c, path: /p, size: 1G, storageClass: s, readWriteMany: true}}}}",
        {
            "storage": {
                "pvc": [
                    {
                        "name": "p",
                        "claimName": "c",
                        "path": "/p",
                        "claimInfo": {"size": "1G", "storageClass": "s", "accessModes": {"readWriteMany": True}},
                    }
                ]
            }
        },
    ),
    ("readOnlyRootFilesystem", "{value: true}", {"security": {"readOnlyRootFilesystem": True}}),
    (
        "readinessProbe",
        "{value: {httpGet: {path: /h, port: 80}, periodSeconds: 5}}",
        {"probes": {"readiness": {"periodSeconds": 5, "handler": {"httpGet": {"path": "/h", "port": 80}}}}},
    ),
    ("runAsNonRoot", "{value: true}", {"security": {"runAsNonRoot": True}}),
    ("runAsUser", "{value: true}", {"security": {"uidGidSource": "fromIdpToken"}}),
    (
        "s3",
        "{items: {s: {value: {bucket: b, path: /p, url: https://u, secretName: k, key: i, secret: j}}}}",
        {
            "storage": {
                "s3": [
                    {
                        "name": "s",
                        "bucket": "b",
                        "path": "/p",
                        "url": "https://u",
                        "accessKeySecret": "k",
                        "secretKeyOfAccessKeyId": "i",
                        "secretKeyOfSecretKey": "j",
                    }
                ]
            }
        },
    ),
    ("seccompProfileType", "{value: RuntimeDefault}", {"security": {"seccompProfileType": "RuntimeDefault"}}),
    ("stdin", "{value: true}", {"stdin": True}),
    ("supplementalGroups", '{value: "2,3"}', {"security": {"supplementalGroups": "2,3"}}),
    ("terminateAfterPreemption", "{value: true}", {"terminateAfterPreemption": True}),
    (
        "tolerations",
        "{items: {t: {value: {key: k, operator: Equal, value: v, effect: NoExecute, seconds: 5}}}}",
        {
            "tolerations": [
                {"name": "t", "key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "seconds": 5}
            ]
        },
    ),
    ("tty", "{value: false}", {"tty": False}),
    ("username", "{value: Ann}", {"username": "Ann"}),
    (
        "volumes",
        "{items: {v: {value: {path: /h, mountPath: /m, readOnly: false, mountPropagation: HostToContainer}}}}",
        {
            "storage": {
                "hostPath": [
                    {
                        "name": "v",
                        "path": "/h",
                        "mountPath": "/m",
                        "readOnly": False,
                        "mountPropagation": "HostToContainer",
                    }
                ]
            }
        },
    ),
    ("workingDir", "{value: /w}", {"workingDir": "/w"}),
]
#: Fields that mean something together with others only; they have tests of their own below and in test_yaml_pairs.
TOGETHER = {
    "active",
    "baseWorkload",
    "gpuLimit",
    "gpuMemoryLimit",
    "image",
    "ingressUrl",
    "mountPropagation",
    "mpi",
    "name",
    "namePrefix",
    "podAffinity",
    "podAffinitySchedulingRule",
    "podAffinityTopology",
    "processes",
    "runAsGid",
    "runAsUid",
    "serviceType",
    "slotsPerWorker",
    "usage",
    "userId",
}


@pytest.mark.parametrize(("name", "written", "want_rest"), FIELDS, ids=[name for name, _, _ in FIELDS])
def test_field(name: str, written: str, want_rest: dict[str, Any]) -> None:
    assert rest(f"{name}: {written}") == (want_rest if name != "completions" else {"completions": 4})


def test_every_field_has_a_case() -> None:
    own = {name for name, field in yaml_fields(TRAINING).items() if TRAINING.letter in field.kinds}
    assert {name for name, _, _ in FIELDS} | TOGETHER == own


@pytest.mark.parametrize(
    ("written", "want_rest"),
    [
        pytest.param("args: {value: -x}", {"args": "-x"}, id="args"),
        pytest.param("hostipc: {value: true}", {"security": {"hostIpc": True}}, id="hostipc"),
        pytest.param("Parallelism: {value: 1}", {"parallelism": 1}, id="capital letter"),
        pytest.param(
            "configMapVolume: {items: {v: {value: {Name: cm, MountPath: /c}}}}",
            {"storage": {"configMapVolume": [{"name": "v", "configMap": "cm", "mountPath": "/c"}]}},
            id="configMapVolume and capital members",
        ),
        pytest.param("nodePools: {value: [a, b]}", {"nodePools": ["a", "b"]}, id="pools as a list"),
        pytest.param(
            "supplementalGroups: {value: 2;3}", {"security": {"supplementalGroups": "2,3"}}, id="groups by semicolons"
        ),
        pytest.param('nodePools: {value: "a, b"}', {"nodePools": ["a", "b"]}, id="pools by commas"),
        pytest.param('completions: {value: "4"}', {"completions": 4}, id="a number as text"),
        pytest.param("completions: {value: 4.0}", {"completions": 4}, id="a whole number with a point"),
        pytest.param('tty: {value: "false"}', {"tty": False}, id="a boolean as text"),
        pytest.param("stdin: {value: yes}", {"stdin": True}, id="yes"),
        pytest.param("cpu: {value: 500m}", {"compute": {"cpuCoreRequest": 0.5}}, id="cores in thousandths"),
        pytest.param("imagePullPolicy: {value: always}", {"imagePullPolicy": "Always"}, id="small letters"),
        pytest.param(
            "capabilities: {value: 'CHOWN,KILL'}", {"security": {"capabilities": ["CHOWN", "KILL"]}}, id="words"
        ),
        pytest.param(
            "readinessProbe: {value: 'httpGet: {port: 80}'}",
            {"probes": {"readiness": {"handler": {"httpGet": {"port": 80}}}}},
            id="a probe as YAML text",
        ),
        pytest.param(
            "gitSync: {items: {g: {value: {Repository: https://x/r, Path: /d, revision: v}}}}",
            {"storage": {"git": [{"name": "g", "repository": "https://x/r", "path": "/d", "revision": "v"}]}},
            id="git's other names",
        ),
        pytest.param(
            "ports: {items: {'1': {value: {container: 80}}}}",
            {"ports": [{"container": 80, "serviceType": "ClusterIP"}]},
            id="a key of digits is no name",
        ),
        pytest.param(
            "environment: {items: {A: {value: 'SECRET:s,k'}}}",
            {"environmentVariables": [{"name": "A", "secret": {"name": "s", "key": "k"}}]},
            id="a variable from a secret",
        ),
    ],
)
def test_spellings(written: str, want_rest: dict[str, Any]) -> None:
    assert rest(written) == want_rest


@pytest.mark.parametrize(
    ("spec", "want_place", "want_path", "want_words"),
    [
        pytest.param("image: ubuntu", (5, 3), "spec.image", "lacks value:", id="value forgotten"),
        pytest.param("image: {value: {value: u}}", (5, 3), "spec.image", "value: twice", id="value doubled"),
        pytest.param("image:\n  value:", (5, 3), "spec.image", "empty value:", id="value empty"),
        pytest.param("image: {vlaue: u}", (5, 3), "spec.image", "no value:", id="value misspelt"),
        pytest.param("imag: {value: u}", (5, 3), "spec.imag", "did you mean image?", id="near match"),
        pytest.param("minScale: {value: 1}", (5, 3), "spec.minScale", "InferenceWorkload", id="another kind's field"),
        pytest.param(
            "preemptible: {value: true}", (5, 3), "spec.preemptible", "InteractiveWorkload", id="a workspace's field"
        ),
        pytest.param(
            "podAffinity: {value: true}\npodAffinityTopology: {value: zone}",
            (5, 3),
            "spec.podAffinitySchedulingRule",
            "is missing",
            id="no rule of an affinity",
        ),
        pytest.param(
            'labels: {items: {"a b": {value: x}}}',
            (5, 20),
            "spec.labels.items.a b.value.name",
            "not the key of a label",
            id="a word that is also a member",
        ),
        pytest.param(
            "gpuLimit: {value: 0.5}", (5, 3), "spec.gpuLimit", "gpu is not a fraction", id="the limit of no portion"
        ),
        pytest.param(
            "gpuMemoryLimit: {value: 1G}", (5, 20), "spec.gpuMemoryLimit", "gpuMemory is not", id="the limit of nothing"
        ),
        pytest.param(
            "gpu: {value: 0.5}\ngpuMemory: {value: 1G}",
            (6, 15),
            "spec.gpuMemory",
            "gpu is a fraction of a device",
            id="two ways to share a device",
        ),
        pytest.param(
            "readinessProbe: {value: {tcpSocket: {port: 80}}}",
            (5, 3),
            "spec.readinessProbe",
            "has tcpSocket; only httpGet",
            id="another probe",
        ),
        pytest.param("migProfile: {value: half}", (5, 16), "spec.migProfile", "such as 1g.5gb", id="no MIG profile"),
        pytest.param(
            "gitSync: {items: {g: {value: {repository: 'https://a/b', path: /g, directory: /h}}}}",
            (5, 70),
            "spec.gitSync.items.g.value.directory",
            "a second time",
            id="two spellings of a member",
        ),
        pytest.param(
            "s3: {items: {s: {value: {bucket: models, path: /s, key: K}}}}",
            (5, 20),
            "spec.s3.items.s.value.secret",
            "is missing",
            id="half of the credentials",
        ),
        pytest.param(
            "gitSync: {items: {g: {value: {repository: 'https://a/b', path: /g, password: p}}}}",
            (5, 25),
            "spec.gitSync.items.g.value.username",
            "is missing",
            id="a password without a user",
        ),
        pytest.param("cpu: {value: many}", (5, 3), "spec.cpu", "a number is expected", id="no number"),
        pytest.param("backoffLimit: {value: 1.5}", (5, 3), "spec.backoffLimit", "whole number", id="no whole number"),
        pytest.param("tty: {value: maybe}", (5, 3), "spec.tty", "true or false", id="no boolean"),
        pytest.param(f"completions: {{value: {'9' * 5000}}}", (5, 3), "spec.completions", "5000 characters", id="huge"),
        pytest.param("cpu: {value: 1e400}", (5, 3), "spec.cpu", "which is too large", id="infinite"),
        pytest.param("imagePullPolicy: {value: allways}", (5, 3), "spec.imagePullPolicy", "mean Always?", id="choice"),
        pytest.param("ports: {value: [80]}", (5, 3), "spec.ports", "takes items:", id="value for items"),
        pytest.param("cpu: {items: {}}", (5, 3), "spec.cpu", "takes value:", id="items for value"),
        pytest.param("usage: {value: Submit}", (5, 3), "spec.usage", "without value:", id="usage wrapped"),
        pytest.param("usage: Sometimes", (5, 3), "spec.usage", "Submit", id="usage unknown"),
        pytest.param("cpu: {value: 1}\nCPU: {value: 2}", (6, 3), "spec.CPU", "a second time", id="two spellings"),
        pytest.param(
            "pvcs: {items: {p: {value: {claimName: c, path: /p, siez: 1}}}}",
            (5, 54),
            "spec.pvcs.items.p.value.siez",
            "mean size?",
            id="member misspelt",
        ),
        pytest.param(
            "pvcs: {items: {p: {value: {claimName: c, path: /p}}}}",
            (5, 18),
            "spec.pvcs.items.p.value.size",
            "must have a size",
            id="size missing",
        ),
        pytest.param(
            "memory: {value: 2G}\nmemoryLimit: {value: 1G}", (6, 17), "spec.memoryLimit", "below memory", id="limit"
        ),
        pytest.param("gpu: {value: 2.5}", (5, 3), "spec.gpu", "whole number of devices", id="gpu 2.5"),
        pytest.param("gpu: {value: 2}\ngpuDevices: {value: 3}", (5, 3), "spec.gpu", "gpuDevices is 3", id="two counts"),
        pytest.param(
            "podAffinityTopology: {value: z}", (5, 3), "spec.podAffinityTopology", "only with", id="no affinity"
        ),
        pytest.param(
            "environment: {items: {A: {value: 'SECRET:s'}}}",
            (5, 25),
            "spec.environment.items.A",
            "SECRET:name,key",
            id="half a reference",
        ),
        pytest.param(
            "nodePool: {value: a}\nnodePools: {value: b}",
            (5, 3),
            "spec.nodePool",
            "together with nodePools",
            id="pools",
        ),
        pytest.param("parallelism: {value: 3}", (5, 17), "spec.parallelism", "between 1 and completions", id="rule"),
        pytest.param("workingDir: {value: ''}", (5, 16), "spec.workingDir", "is empty", id="bound"),
    ],
)
def test_refusals(spec: str, want_place: tuple[int, int], want_path: str, want_words: str) -> None:
    found = [issue for issue in issues_of(document(spec)) if issue.path == want_path]
    assert len(found) == 1
    assert (found[0].line, found[0].column) == want_place
    assert want_words in found[0].details


@pytest.mark.parametrize(
    ("text", "want_path", "want_words"),
    [
        pytest.param("- a", "", "a document with apiVersion", id="a list"),
        pytest.param(document("").replace("v2alpha1", "v9"), "apiVersion", "must be run.ai/v2alpha1", id="version"),
        pytest.param(document("").replace("Training", "Trainng"), "kind", "did you mean TrainingWorkload?", id="kind"),
        pytest.param(document("").replace("name: x, ", ""), "metadata.name", "is missing", id="no object name"),
        pytest.param(
            document("").replace("runai-team-a", "team-a"), "metadata.namespace", "runai-<project>", id="space"
        ),
        pytest.param(
            document("").replace("namespace", "namepsace"), "metadata.namepsace", "mean namespace?", id="meta"
        ),
        pytest.param(
            document("", "Job").replace("run.ai/v2alpha1", "batch/v1"),
            "apiVersion",
            "fairlead convert",
            id="a plain Job",
        ),
    ],
)
def test_refusals_of_the_outer_parts(text: str, want_path: str, want_words: str) -> None:
    assert any(issue.path == want_path and want_words in issue.details for issue in issues_of(text))


def test_all_mistakes_at_once() -> None:
    paths = {issue.path for issue in issues_of(document("image: u\ncpu: {value: x}\ncomand: {value: y}"))}
    assert paths == {"spec.image", "spec.cpu", "spec.comand", "spec.name"}


def test_names() -> None:
    assert (workload("name: {value: a}").name, workload("name: {value: a}").is_prefix) == ("a", False)
    assert (workload("namePrefix: {value: b}").name, workload("namePrefix: {value: b}").is_prefix) == ("b", True)
    both = issues_of(document("name: {value: a}\nnamePrefix: {value: b}\nimage: {value: i}"))
    assert [issue.path for issue in both] == ["spec.namePrefix"]


def test_project_active_and_submission() -> None:
    found = workload("active: {value: false}")
    assert (found.project, found.is_active, workload("cpu: {value: 1}").is_active) == ("team-a", False, True)
    submission = found.submission("7", "c")
    assert (submission.kind, submission.project_id, submission.dialect) == ("training", "7", "workload-yaml")


def test_priority_is_in_labels() -> None:
    labels = "labels: {priorityClassName: high, kai.scheduler/preemptibility: preemptible, other: x}"
    text = document("name: {value: x}\nimage: {value: i}").replace("name: x,", f"name: x, {labels},")
    found = read_workload(read_manifests(text)[0][0])[0]
    assert found is not None
    assert (found.plain["priorityClass"], found.plain["preemptibility"]) == ("high", "preemptible")
    wrong = issues_of(text.replace("high", "hgih"))
    assert [(issue.path, issue.line) for issue in wrong] == [("metadata.labels.priorityClassName", 3)]


@pytest.mark.parametrize("resource", ["Job", "RunaiJob"])
@pytest.mark.parametrize("version", ["run.ai/v2alpha1", "run.ai/v1"])
def test_legacy_job_is_a_training(resource: str, version: str) -> None:
    text = document("name: {value: x}\nimage: {value: i}\ncompletions: {value: 2}", resource)
    found, issues = read_workload(read_manifests(text.replace("run.ai/v2alpha1", version))[0][0])
    assert issues == []
    assert found is not None
    assert found.kind is TRAINING
    assert found.remarks == (("kind", f"{resource} is an older kind; it runs as TrainingWorkload"),)


def test_legacy_job_lacks_what_is_a_trainings_alone() -> None:
    found = issues_of(document("name: {value: x}\nimage: {value: i}\npreemptionLimit: {value: 2}", "Job"))
    assert [(issue.path, "TrainingWorkload" in issue.details) for issue in found] == [("spec.preemptionLimit", True)]


def test_a_text_full_of_mistakes_is_answered_quickly() -> None:
    fields = "".join(f"field{number}: {{value: x}}\n" for number in range(10_000))
    items = "".join(f"  p{number}: {{value: {{siez: x}}}}\n" for number in range(3000))
    for spec in (fields, f"pvcs:\n items:\n{items}"):
        began = time.process_time()
        assert 100 < len(issues_of(document(spec))) < 1000
        assert time.process_time() - began < 2
