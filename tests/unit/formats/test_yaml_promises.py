"""What the documents of workload YAML promise in their sentences: defaults, what must be given, what excludes what."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.formats.yaml.documents import YamlWorkload
from fairlead.model.pods.container_fields import given
from fairlead.model.pods.podset import PodSet
from tests.unit.formats.yaml_texts import document, issues_of, workload

THIRTY_DAYS = 30 * 24 * 3600


def pods(found: YamlWorkload) -> PodSet:
    return found.kind.podsets(found.spec)[0]


def storage(found: YamlWorkload, kind: str) -> Any:
    fields: dict[str, Any] = dict(given(pods(found).container.fields))
    return fields["storage"][kind][0]


@pytest.mark.parametrize(
    ("spec", "look", "want"),
    [
        pytest.param("", lambda found: found.is_active, True, id="active"),
        pytest.param("", lambda found: pods(found).backoff_limit, 6, id="backoffLimit"),
        pytest.param("", lambda found: pods(found).completions, 1, id="completions"),
        pytest.param("completions: {value: 3}", lambda found: pods(found).count, 1, id="parallelism"),
        pytest.param("", lambda found: found.kind.lifetime_after_end(found.spec), THIRTY_DAYS, id="auto-deletion"),
        pytest.param("", lambda found: found.kind.max_preemptions(found.spec), None, id="terminateAfterPreemption"),
        pytest.param(
            "", lambda found: (pods(found).container.tty, pods(found).container.stdin), (False, False), id="tty"
        ),
        pytest.param("", lambda found: pods(found).request.gpu_devices, 0, id="gpu"),
        pytest.param("gpu: {value: 0.5}", lambda found: pods(found).request.gpu_devices, 1, id="devices of a part"),
        pytest.param(
            "", lambda found: "security" in given(pods(found).container.fields), False, id="no host namespaces"
        ),
        pytest.param(
            "pvcs: {items: {p: {value: {claimName: c, path: /p, size: 1G}}}}",
            lambda found: storage(found, "pvc")["claimInfo"].get("accessModes", {"readWriteOnce": True})[
                "readWriteOnce"
            ],
            True,
            id="access mode",
        ),
        pytest.param(
            "pvcs: {items: {p: {value: {claimName: c, path: /p, size: 1G, storageClass: default}}}}",
            lambda found: "storageClass" in storage(found, "pvc")["claimInfo"],
            False,
            id="storage class default",
        ),
        pytest.param(
            "volumes: {items: {v: {value: {path: /h, mountPath: /m}}}}",
            lambda found: storage(found, "hostPath")["readOnly"],
            True,
            id="volumes are read-only",
        ),
        pytest.param(
            "nfs: {items: {v: {value: {sourcePath: /h, nfsServer: s, targetPath: /m}}}}",
            lambda found: storage(found, "nfs")["readOnly"],
            True,
            id="nfs is read-only",
        ),
        pytest.param(
            "ports: {items: {p: {value: {container: 80}}}}",
            lambda found: found.plain["ports"][0]["serviceType"],
            "ClusterIP",
            id="serviceType",
        ),
        pytest.param(
            "nodePools: {value: first second}",
            lambda found: found.plain["nodePools"],
            ["first", "second"],
            id="nodePools in their order",
        ),
    ],
)
def test_defaults(spec: str, look: Callable[[YamlWorkload], Any], want: Any) -> None:
    assert look(workload(spec)) == want


HEAD = "name: {value: x}\nimage: {value: i}\n"


@pytest.mark.parametrize(
    ("spec", "want_path"),
    [
        pytest.param("name: {value: x}", "spec.image", id="image"),
        pytest.param("image: {value: i}", "spec.name", id="name"),
        pytest.param(f"{HEAD}namePrefix: {{value: y}}", "spec.namePrefix", id="name and namePrefix"),
        pytest.param(f"{HEAD}parallelism: {{value: 2}}", "spec.parallelism", id="parallelism above completions"),
        pytest.param(f"{HEAD}cpu: {{value: 2}}\ncpuLimit: {{value: 1}}", "spec.cpuLimit", id="cpuLimit"),
        pytest.param(f"{HEAD}memory: {{value: 2G}}\nmemoryLimit: {{value: 1G}}", "spec.memoryLimit", id="memoryLimit"),
        pytest.param(
            f"{HEAD}gpuMemory: {{value: 2G}}\ngpuMemoryLimit: {{value: 1G}}", "spec.gpuMemoryLimit", id="gpuMemoryLimit"
        ),
        pytest.param(f"{HEAD}gpu: {{value: 0.5}}\ngpuLimit: {{value: 0.2}}", "spec.gpuLimit", id="gpuLimit"),
        pytest.param(f"{HEAD}gpu: {{value: 0.5}}\ngpuMemory: {{value: 1G}}", "spec.gpuMemory", id="gpu and gpuMemory"),
        pytest.param(f"{HEAD}tty: {{value: true}}", "spec.tty", id="tty without stdin"),
        pytest.param(f"{HEAD}seccompProfileType: {{value: Localhost}}", "spec.seccompProfileType", id="Localhost"),
        pytest.param(f"{HEAD}podAffinitySchedulingRule: {{value: hard}}", "spec.podAffinitySchedulingRule", id="rule"),
        pytest.param(f"{HEAD}podAffinityTopology: {{value: t}}", "spec.podAffinityTopology", id="topology"),
        pytest.param(
            f"{HEAD}pvcs: {{items: {{p: {{value: {{claimName: c, path: /p}}}}}}}}",
            "spec.pvcs.items.p.value.size",
            id="size",
        ),
        pytest.param(
            f"{HEAD}gitSync: {{items: {{g: {{value: {{directory: /d}}}}}}}}",
            "spec.gitSync.items.g.value.repository",
            id="repository",
        ),
        pytest.param(
            f"{HEAD}nfs: {{items: {{n: {{value: {{sourcePath: /s, targetPath: /t}}}}}}}}",
            "spec.nfs.items.n.value.nfsServer",
            id="nfsServer",
        ),
        pytest.param(
            f"{HEAD}s3: {{items: {{s: {{value: {{path: /p}}}}}}}}", "spec.s3.items.s.value.bucket", id="bucket"
        ),
        pytest.param(
            f"{HEAD}configMapVolumes: {{items: {{c: {{value: {{name: n}}}}}}}}",
            "spec.configMapVolumes.items.c.value.mountPath",
            id="mountPath",
        ),
        pytest.param(
            f"{HEAD}tolerations: {{items: {{t: {{value: {{key: k, operator: Exists}}}}}}}}",
            "spec.tolerations.items.t.value.effect",
            id="effect",
        ),
        pytest.param(
            f"{HEAD}exposedUrls: {{items: {{u: {{value: {{toolType: t}}}}}}}}",
            "spec.exposedUrls.items.u.value.container",
            id="container",
        ),
    ],
)
def test_what_must_be_given_and_what_excludes_what(spec: str, want_path: str) -> None:
    assert [issue.path for issue in issues_of(document(spec))] == [want_path]
