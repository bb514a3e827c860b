"""Every property of Trainings and Distributed Inferences, derived from its sentence in the contract: a value that it
takes, where a cluster's objects show that value, and values that the sentence rules out.

What the schema alone rules out (types, enums, bounds, patterns) the test derives from the contract itself.
"""

from typing import Any, NamedTuple

#: For a property whose effect is not in the objects of a cluster; `tests/field_proofs` names the test that sees it.
ELSEWHERE = ("", "")


_NOTHING: dict[str, Any] = {}


class Row(NamedTuple):
    value: Any
    #: A member and its value that the objects have with the property and lack without it.
    seen: tuple[str, Any] = ELSEWHERE
    #: Values that the sentence rules out, each with the path of the violation if it is another one.
    wrong: tuple[Any, ...] = ()
    #: Members that must stand beside it.
    beside: dict[str, Any] = _NOTHING


class At(NamedTuple):
    """A wrong value whose violation stands at another member of the same object."""

    value: Any
    member: str


#: The items of lists, and objects, with the members that must be given.
BASES: dict[str, Any] = {
    "annotations[]": {"name": "note", "value": "x"},
    "compute.extendedResources[]": {"resource": "vendor.example/link", "quantity": "1"},
    "environmentVariables[]": {"name": "A", "value": "1"},
    "environmentVariables[].secret": {"name": "s", "key": "k"},
    "environmentVariables[].configMap": {"name": "c", "key": "k"},
    "environmentVariables[].podFieldRef": {"path": "metadata.name"},
    "environmentVariables[].userCredential": {"name": "u", "key": "k"},
    "exposedUrls[]": {"container": 8888},
    "imagePullSecrets[]": {"name": "registry"},
    "labels[]": {"name": "stage", "value": "x"},
    "nodeAffinityRequired.nodeSelectorTerms[]": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[]": {"key": "zone", "operator": "In", "values": ["a"]},
    "podAffinity": {"type": "Required", "key": "zone"},
    "ports[]": {"container": 6006, "serviceType": "ClusterIP"},
    "probes.readiness": {"handler": {"httpGet": {"port": 8080}}},
    "probes.readiness.handler": {"httpGet": {"port": 8080}},
    "probes.readiness.handler.httpGet": {"port": 8080},
    "relatedUrls[]": {"url": "https://example.com", "type": "wandb"},
    "security": {"uidGidSource": "custom", "runAsUid": 61234},
    "servingPort": {"port": 8000},
    "storage.configMapVolume[]": {"configMap": "c", "mountPath": "/conf"},
    "storage.dataVolume[]": {"id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "mountPath": "/shared"},
    "storage.emptyDirVolume[]": {"path": "/scratch"},
    "storage.git[]": {"repository": "https://git.example.com/x.git", "path": "/code"},
    "storage.git[].secretRef": {"name": "login", "authenticationMethod": "password"},
    "storage.hostPath[]": {"path": "/srv", "mountPath": "/host"},
    "storage.nfs[]": {"server": "files", "path": "/export", "mountPath": "/nfs"},
    "storage.pvc[]": {"path": "/data", "claimInfo": {"size": "1G"}},
    "storage.pvc[].claimInfo": {"size": "1G"},
    "storage.pvc[].claimInfo.addedAttrValues[]": {"key": "tier", "value": "fast"},
    "storage.s3[]": {"bucket": "b", "path": "/models"},
    "storage.secretVolume[]": {"secret": "s", "mountPath": "/keys"},
    "tolerations[]": {"operator": "Exists", "key": "team", "effect": "NoSchedule"},
}
_PATHS = ("relative", "/", "/.", "/a:b", "/a/../b", "/proc", "//proc/self", "/" + "x" * 256)
_LABELS = ("two words", "-x", "x" * 64)
_KEYS = ("", "two words", "UPPER_/x")
_OBJECT_KEYS = ("..", "a/b", "..data")
_NOT_URLS = ("javascript:alert(1)", "minio", "https://", "ftp://x", "http://a b", "http://a:99999", "http://a:0")
_EXCLUDED = Row(True)
_NAMED = Row("item")

#: By path below the spec of pods: of a training, of a leader, of a worker.
PODS: dict[str, Row] = {
    "annotations": Row(
        [{"name": "note", "value": "x"}],
        ("note", "x"),
        ([{"value": "x"}], [{"name": f"n{number}", "value": "x" * 10_000} for number in range(24)]),
    ),
    "annotations[].name": Row("billing", ("billing", "x"), ("two words", "/x")),
    "annotations[].value": Row("unit 7", ("note", "unit 7")),
    "annotations[].exclude": _EXCLUDED,
    "args": Row("-c 'a b'", ("args", ["-c", "a b"]), ("'open",)),
    "command": Row("python3 -u", ("command", ["python3", "-u"]), ('"open',)),
    "compute": Row({"cpuCoreRequest": 3}, ("cpu", "3000m")),
    "compute.cpuCoreLimit": Row(4, ("cpu", "4000m"), (1e12, 0.5, 0), {"cpuCoreRequest": 1}),
    "compute.cpuCoreRequest": Row(0.5, ("cpu", "500m"), (1e12,)),
    "compute.cpuMemoryLimit": Row("1G", ("memory", "1000000000"), ("500m", "1M", "0"), {"cpuMemoryRequest": "20M"}),
    "compute.cpuMemoryRequest": Row("20M", ("memory", "20000000"), ("500m", "1..G", "-1")),
    "compute.extendedResources": Row([{"resource": "v.example/l"}], ("v.example/l", "1"), ([{"quantity": "1"}],)),
    "compute.extendedResources[].resource": Row(
        "vendor.example/other",
        ("vendor.example/other", "1"),
        ("a b", "/x", "cpu", "plain", "nvidia.com/gpu", "kubernetes.io/x", "requests.example.com/x"),
    ),
    "compute.extendedResources[].quantity": Row("2", ("vendor.example/link", "2"), ("500m", "0.5", "-1")),
    "compute.extendedResources[].exclude": _EXCLUDED,
    "compute.gpuDevicesRequest": Row(2, ("nvidia.com/gpu", "2")),
    "compute.gpuMemoryLimit": Row(
        "4G", ELSEWHERE, ("1G", "500m"), {"gpuRequestType": "memory", "gpuMemoryRequest": "2G"}
    ),
    "compute.gpuMemoryRequest": Row("1G", ("gpu-memory", "954"), ("0", "500m"), {"gpuRequestType": "memory"}),
    "compute.gpuPortionLimit": Row(
        0.75, ("runai-gpu-limit", "0.75"), (0.25, 1.5), {"gpuRequestType": "portion", "gpuPortionRequest": 0.5}
    ),
    "compute.gpuPortionRequest": Row(0.5, ("gpu-fraction", "0.5"), (1.5, 0), {"gpuRequestType": "portion"}),
    "compute.gpuRequestType": Row(
        "portion", ("gpu-fraction", "0.5"), (At("memory", "gpuMemoryRequest"),), {"gpuPortionRequest": 0.5}
    ),
    "compute.largeShmRequest": Row(True, ("mountPath", "/dev/shm")),
    "createHomeDir": Row(True, ("name", "HOME")),
    "environmentVariables": Row([{"name": "B", "value": "2"}], ("name", "B"), ([{"name": "B"}], [{"value": "2"}])),
    "environmentVariables[].name": Row("MODE", ("name", "MODE"), ("A=B", "A\n", "Ü")),
    "environmentVariables[].value": Row("fast", ("value", "fast")),
    "environmentVariables[].secret": Row({"name": "s", "key": "k"}, ("secretKeyRef", {"name": "s", "key": "k"})),
    "environmentVariables[].secret.name": Row("other", ("name", "other"), ("Upper", "a_b")),
    "environmentVariables[].secret.key": Row("other", ("key", "other"), _OBJECT_KEYS),
    "environmentVariables[].configMap": Row({"name": "c", "key": "k"}, ("configMapKeyRef", {"name": "c", "key": "k"})),
    "environmentVariables[].configMap.name": Row("other", ("name", "other"), ("Upper", "a_b")),
    "environmentVariables[].configMap.key": Row("other", ("key", "other"), _OBJECT_KEYS),
    "environmentVariables[].podFieldRef": Row({"path": "metadata.name"}, ("fieldPath", "metadata.name")),
    "environmentVariables[].podFieldRef.path": Row(
        "status.hostIP",
        ("fieldPath", "status.hostIP"),
        ("spec.hostname", "metadata.labels", "metadata.labels['a b']", "metadata.annotations['a/b/c']"),
    ),
    "environmentVariables[].userCredential": Row({"name": "u", "key": "k"}, ("key", "k")),
    "environmentVariables[].userCredential.name": Row("other", ("key", "k")),
    "environmentVariables[].userCredential.key": Row("other", ("key", "other"), _OBJECT_KEYS),
    "environmentVariables[].exclude": _EXCLUDED,
    "environmentVariables[].description": Row("what it is for"),
    "image": Row("python:3", ("image", "python:3"), ("a b", "lab.example/Upper", "x:", "http://a/b", "x@sha256:1")),
    "imagePullPolicy": Row("Always", ("imagePullPolicy", "Always")),
    "imagePullSecrets": Row([{"name": "r"}], ("imagePullSecrets", [{"name": "r"}]), ([{}],)),
    "imagePullSecrets[].name": Row("other", ("imagePullSecrets", [{"name": "other"}]), ("Upper",)),
    "imagePullSecrets[].userCredential": Row(True),
    "imagePullSecrets[].exclude": _EXCLUDED,
    "labels": Row([{"name": "stage", "value": "x"}], ("stage", "x"), ([{"value": "x"}],)),
    "labels[].name": Row("example.com/team", ("example.com/team", "x"), ("two words", "a/b/c")),
    "labels[].value": Row("blue", ("stage", "blue"), _LABELS),
    "labels[].exclude": _EXCLUDED,
    "nodeAffinityRequired": Row(
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}, ("key", "a")
    ),
    "nodeAffinityRequired.nodeSelectorTerms": Row(
        [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}], ("key", "a"), ([], [None])
    ),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions": Row(
        [{"key": "a", "operator": "Exists"}],
        ("key", "a"),
        ([], [{"key": "a", "operator": "Gt", "values": ["9" * 19]}]),
    ),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].key": Row("disk", ("key", "disk"), _KEYS),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].operator": Row(
        "NotIn", ("operator", "NotIn"), (At("Exists", "values"), At("Gt", "values"))
    ),
    "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[].values": Row(
        ["a", "b"], ("values", ["a", "b"]), ([], At(["two words"], "values[0]"))
    ),
    "nodeType": Row("a100", ("run.ai/type", "a100"), _LABELS),
    "podAffinity": Row({"type": "Required", "key": "zone"}, ("topologyKey", "zone"), ()),
    "podAffinity.type": Row("Preferred", ("weight", 100)),
    "podAffinity.key": Row("rack", ("topologyKey", "rack"), _KEYS),
    "probes": Row({"readiness": {"handler": {"httpGet": {"port": 8080}}}}, ("port", 8080)),
    "probes.readiness": Row({"handler": {"httpGet": {"port": 8080}}}, ("port", 8080)),
    "probes.readiness.initialDelaySeconds": Row(7, ("initialDelaySeconds", 7)),
    "probes.readiness.periodSeconds": Row(7, ("periodSeconds", 7)),
    "probes.readiness.timeoutSeconds": Row(7, ("timeoutSeconds", 7)),
    "probes.readiness.successThreshold": Row(7, ("successThreshold", 7)),
    "probes.readiness.failureThreshold": Row(7, ("failureThreshold", 7)),
    "probes.readiness.handler": Row({"httpGet": {"port": 8081}}, ("port", 8081)),
    "probes.readiness.handler.httpGet": Row({"port": 8081}, ("port", 8081)),
    "probes.readiness.handler.httpGet.path": Row("/ready", ("path", "/ready"), ("ready", "/a b")),
    "probes.readiness.handler.httpGet.port": Row(8081, ("port", 8081)),
    "probes.readiness.handler.httpGet.host": Row("example.com", ("value", "example.com"), ("a b",)),
    "probes.readiness.handler.httpGet.scheme": Row("HTTPS", ("scheme", "HTTPS")),
    "security": Row({"runAsNonRoot": True}, ("runAsNonRoot", True)),
    "security.capabilities": Row(["CHOWN"], ("add", ["CHOWN"])),
    "security.readOnlyRootFilesystem": Row(True, ("readOnlyRootFilesystem", True)),
    "security.runAsGid": Row(61235, ("runAsGroup", 61235), (-1, 2**32 - 1)),
    "security.runAsNonRoot": Row(True, ("runAsNonRoot", True)),
    "security.runAsUid": Row(61236, ("runAsUser", 61236), (-1, 2**32 - 1, 0), {"runAsNonRoot": True}),
    "security.seccompProfileType": Row("RuntimeDefault", ("type", "RuntimeDefault"), ("Localhost",)),
    "security.supplementalGroups": Row(
        "20,30", ("supplementalGroups", [20, 30]), ("2;3", "a,b", "-1", "4294967295", "1,,2")
    ),
    "security.uidGidSource": Row("custom", ("runAsUser", 61234)),
    "storage": Row(
        {"emptyDirVolume": [{"path": "/x"}]},
        ("mountPath", "/x"),
        (At({"emptyDirVolume": [{"path": "/x"}, {"path": "//x/."}]}, "storage.emptyDirVolume[1].path"),),
    ),
    "storage.configMapVolume": Row([{"configMap": "c", "mountPath": "/x"}], ("mountPath", "/x"), ([{}],)),
    "storage.configMapVolume[].name": _NAMED,
    "storage.configMapVolume[].configMap": Row("other", ("name", "other"), ("Upper",)),
    "storage.configMapVolume[].mountPath": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.configMapVolume[].subPath": Row("a.toml", ("subPath", "a.toml"), ("/a", "../a")),
    "storage.configMapVolume[].defaultMode": Row("0400", ("defaultMode", 0o400), ("0888", "644x")),
    "storage.configMapVolume[].exclude": _EXCLUDED,
    "storage.emptyDirVolume": Row([{"path": "/x"}], ("mountPath", "/x"), ([{}],)),
    "storage.emptyDirVolume[].name": _NAMED,
    "storage.emptyDirVolume[].path": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.emptyDirVolume[].medium": Row("Memory", ("medium", "Memory"), ("Disk",)),
    "storage.emptyDirVolume[].sizeLimit": Row("500Mi", ("sizeLimit", "500Mi"), ("0", "500m")),
    "storage.emptyDirVolume[].exclude": _EXCLUDED,
    "storage.pvc": Row(
        [{"path": "/x", "claimInfo": {"size": "1G"}}],
        ("mountPath", "/x"),
        ([{}], [{"path": path, "claimName": "c", "claimInfo": {"size": "1G"}} for path in ("/x", "/y")]),
    ),
    "storage.pvc[].name": _NAMED,
    "storage.pvc[].path": Row("/x", ("mountPath", "/x"), (*_PATHS, "a/b")),
    "storage.pvc[].existingPvc": Row(False, ("mountPath", "/data"), (At(True, "claimInfo"),)),
    "storage.pvc[].claimName": Row("my-claim", ("claimName", "my-claim"), ("Upper", "a b", "../x", "-a")),
    "storage.pvc[].readOnly": Row(True, ("readOnly", True)),
    "storage.pvc[].ephemeral": Row(False),
    "storage.pvc[].claimInfo": Row({"size": "2G"}, ("storage", "2G"), ({},)),
    "storage.pvc[].claimInfo.size": Row("2Gi", ("storage", "2Gi"), ("0", "500m", "lots")),
    "storage.pvc[].claimInfo.storageClass": Row("fast", ("storageClassName", "fast"), ("Upper",)),
    "storage.pvc[].claimInfo.accessModes": Row(
        {"readWriteMany": True}, ("accessModes", ["ReadWriteOnce", "ReadWriteMany"]), ({"readWriteOnce": False},)
    ),
    "storage.pvc[].claimInfo.accessModes.readWriteOnce": Row(
        True, ("accessModes", ["ReadWriteOnce"]), (At(False, ""),)
    ),
    "storage.pvc[].claimInfo.accessModes.readOnlyMany": Row(True, ("accessModes", ["ReadWriteOnce", "ReadOnlyMany"])),
    "storage.pvc[].claimInfo.accessModes.readWriteMany": Row(True, ("accessModes", ["ReadWriteOnce", "ReadWriteMany"])),
    "storage.pvc[].claimInfo.volumeMode": Row("Block", ("volumeMode", "Block")),
    "storage.pvc[].claimInfo.addedAttrValues": Row(
        [{"key": "tier", "value": "fast"}], ("tier", "fast"), ([{"key": "tier", "value": "x"}] * 2,)
    ),
    "storage.pvc[].claimInfo.addedAttrValues[].key": Row("level", ("level", "fast"), ("two words",)),
    "storage.pvc[].claimInfo.addedAttrValues[].value": Row("slow", ("tier", "slow")),
    "storage.pvc[].dataSharing": Row(True),
    "storage.pvc[].exclude": _EXCLUDED,
    "storage.secretVolume": Row([{"secret": "s", "mountPath": "/x"}], ("mountPath", "/x"), ([{}],)),
    "storage.secretVolume[].name": _NAMED,
    "storage.secretVolume[].mountPath": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.secretVolume[].defaultMode": Row("0400", ("defaultMode", 0o400), ("0888",)),
    "storage.secretVolume[].secret": Row("other", ("secretName", "other"), ("Upper", "a b", "../x")),
    "storage.secretVolume[].exclude": _EXCLUDED,
    "tolerations": Row([{"operator": "Exists", "key": "k", "effect": "Any"}], ("key", "k"), ([{}],)),
    "tolerations[].name": _NAMED,
    "tolerations[].operator": Row("Exists", ("operator", "Exists"), (At("Equal", "value"),)),
    "tolerations[].key": Row("disk", ("key", "disk"), _KEYS),
    "tolerations[].value": Row("blue", ("value", "blue"), _LABELS, {"operator": "Equal"}),
    "tolerations[].effect": Row("NoExecute", ("effect", "NoExecute")),
    "tolerations[].seconds": Row(300, ("tolerationSeconds", 300), (2**63,), {"effect": "NoExecute"}),
    "tolerations[].exclude": _EXCLUDED,
    "workingDir": Row("/work", ("workingDir", "/work"), ("work", "./x")),
}

#: What only trainings have.
TRAININGS: dict[str, Row] = {
    "autoDeletionTimeAfterCompletionSeconds": Row(60, ELSEWHERE, (-1, 2**62)),
    "backoffLimit": Row(3, ("backoffLimit", 3), (-1, 2**31)),
    "category": Row("Build", ELSEWHERE, ("Own", "build", "")),
    "completions": Row(4, ("completions", 4), (0, -1, 100_001)),
    "exposedUrls": Row(
        [{"container": 8888}], ("containerPort", 8888), ([{}], [{"container": 1, "url": "https://a/b"}] * 2)
    ),
    "exposedUrls[].container": Row(9999, ("containerPort", 9999), (0, 65536, -1)),
    "exposedUrls[].url": Row(
        "https://mine.example.com/x", ELSEWHERE, ("javascript:alert(1)", "ftp://x", "a b", "http://", "https://a:99999")
    ),
    "exposedUrls[].authorizationType": Row(
        "authorizedUsers", ELSEWHERE, (At("authorizedGroups", "authorizedGroups"),), {"authorizedUsers": ["ann"]}
    ),
    "exposedUrls[].authorizedUsers": Row(
        ["ann"], ELSEWHERE, ([], [None], [5], [""], ["x" * 254]), {"authorizationType": "authorizedUsers"}
    ),
    "exposedUrls[].authorizedGroups": Row(
        ["staff"], ELSEWHERE, ([], [None], [" "]), {"authorizationType": "authorizedGroups"}
    ),
    "exposedUrls[].toolType": Row("jupyter-notebook"),
    "exposedUrls[].toolName": Row("Jupyter"),
    "exposedUrls[].name": _NAMED,
    "exposedUrls[].exclude": _EXCLUDED,
    "nodePools": Row(
        ["gpu", "default"],
        ("kai.scheduler/node-pools", "gpu default"),
        tuple(
            At([name], "nodePools[0]")
            for name in ("", "two words", "-x", "a/b", "A100", "a_b", "a-", None, 5, "x" * 64)
        ),
    ),
    "parallelism": Row(2, ("parallelism", 2), (0, 3, -1), {"completions": 2}),
    "ports": Row(
        [{"container": 1, "serviceType": "ClusterIP"}],
        ("containerPort", 1),
        (
            [{}],
            [{"container": one, "serviceType": "NodePort", "external": 30001} for one in (1, 2)],
        ),
    ),
    "ports[].container": Row(7007, ("containerPort", 7007)),
    "ports[].serviceType": Row("NodePort", ("type", "NodePort")),
    "ports[].external": Row(30080, ("nodePort", 30080), (8080, 0, 65536), {"serviceType": "NodePort"}),
    "ports[].toolType": Row("tensorboard"),
    "ports[].toolName": Row("TensorBoard"),
    "ports[].name": _NAMED,
    "ports[].exclude": _EXCLUDED,
    "preemptibility": Row("non-preemptible"),
    "priorityClass": Row("high", ELSEWHERE, ("hihg", "")),
    "relatedUrls": Row([{"url": "https://a", "type": "t"}], ELSEWHERE, ([{}],)),
    "relatedUrls[].url": Row("http://a.example:80/x?y#z", ELSEWHERE, _NOT_URLS),
    "relatedUrls[].type": Row("mlflow"),
    "relatedUrls[].name": _NAMED,
    "relatedUrls[].exclude": _EXCLUDED,
    "restartPolicy": Row("OnFailure", ("restartPolicy", "OnFailure"), ()),
    "security.allowPrivilegeEscalation": Row(False, ("allowPrivilegeEscalation", False)),
    "security.hostIpc": Row(True, ("hostIPC", True)),
    "security.hostNetwork": Row(True, ("hostNetwork", True)),
    "stdin": Row(True, ("stdin", True)),
    "storage.dataVolume": Row([BASES["storage.dataVolume[]"]], ("mountPath", "/shared"), ([{}],)),
    "storage.dataVolume[].id": Row("3f2504e0-4f89-41d3-9a0c-0305e82c3302", ("mountPath", "/shared"), ("no-id",)),
    "storage.dataVolume[].mountPath": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.dataVolume[].exclude": _EXCLUDED,
    "storage.git": Row(
        [{"repository": "https://a/b", "path": "/x"}],
        ("mountPath", "/x"),
        (
            [{}],
            *([{"repository": "https://a/b", "path": "/x", f"secretKeyOf{key}": "k"}] for key in ("User", "Password")),
            [{"repository": "https://a/b", "path": "/x", "passwordSecret": "s", "secretRef": {"name": "s"}}],
        ),
    ),
    "storage.git[].name": _NAMED,
    "storage.git[].repository": Row(
        "ssh://git@a/b", ("value", "ssh://git@a/b"), ("b", "--upload-pack=x", "a b", "http://", "ext::sh")
    ),
    "storage.git[].branch": Row(
        "feature/x", ("value", "feature/x"), ("--upload-pack=x", "a b", "a..b", "a\nb", "/a", "a~1", "x.lock", "@")
    ),
    "storage.git[].revision": Row("v1", ("value", "v1"), ("--x", "a b", "a\nb", "a..b")),
    "storage.git[].path": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.git[].passwordSecret": Row("login", ("name", "login"), ("Upper", "a b")),
    "storage.git[].secretKeyOfUser": Row("who", ("key", "who"), _OBJECT_KEYS, {"passwordSecret": "login"}),
    "storage.git[].secretKeyOfPassword": Row("pass", ("key", "pass"), _OBJECT_KEYS, {"passwordSecret": "login"}),
    "storage.git[].exclude": _EXCLUDED,
    "storage.git[].secretRef": Row({"name": "login"}, ("name", "login"), ()),
    "storage.git[].secretRef.name": Row("other", ("name", "other")),
    "storage.git[].secretRef.authenticationMethod": Row("ssh-key"),
    "storage.git[].secretRef.secretKeyOfUser": Row("who", ("key", "who"), _OBJECT_KEYS),
    "storage.git[].secretRef.secretKeyOfPassword": Row("pass", ("key", "pass"), _OBJECT_KEYS),
    "storage.hostPath": Row([{"path": "/a", "mountPath": "/x"}], ("mountPath", "/x"), ([{}],)),
    "storage.hostPath[].name": _NAMED,
    "storage.hostPath[].path": Row("/a", ("path", "/a"), ("a", "/a/../b")),
    "storage.hostPath[].readOnly": Row(True, ("readOnly", True)),
    "storage.hostPath[].mountPath": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.hostPath[].mountPropagation": Row("HostToContainer", ("mountPropagation", "HostToContainer")),
    "storage.hostPath[].exclude": _EXCLUDED,
    "storage.nfs": Row([{"server": "f", "path": "/a", "mountPath": "/x"}], ("mountPath", "/x"), ([{}],)),
    "storage.nfs[].name": _NAMED,
    "storage.nfs[].path": Row("/a", ("path", "/a"), ("a", "/a/../b")),
    "storage.nfs[].readOnly": Row(True, ("readOnly", True)),
    "storage.nfs[].server": Row("other", ("server", "other"), ("a b", "http://x", "-o", "a/b")),
    "storage.nfs[].mountPath": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.nfs[].exclude": _EXCLUDED,
    "storage.s3": Row(
        [{"bucket": "b", "path": "/x"}],
        ("mountPath", "/x"),
        ([{}], *([{"bucket": "b", "path": "/x", f"secretKeyOf{key}": "k"}] for key in ("AccessKeyId", "SecretKey"))),
    ),
    "storage.s3[].name": _NAMED,
    "storage.s3[].bucket": Row("other", ("value", "other"), ("a b", "-x", "a/b", "..")),
    "storage.s3[].path": Row("/x", ("mountPath", "/x"), _PATHS),
    "storage.s3[].url": Row("http://minio:9000", ("value", "http://minio:9000"), _NOT_URLS),
    "storage.s3[].accessKeySecret": Row("login", ("name", "login"), ("Upper",)),
    "storage.s3[].secretKeyOfAccessKeyId": Row("id", ("key", "id"), _OBJECT_KEYS, {"accessKeySecret": "login"}),
    "storage.s3[].secretKeyOfSecretKey": Row("sk", ("key", "sk"), _OBJECT_KEYS, {"accessKeySecret": "login"}),
    "storage.s3[].exclude": _EXCLUDED,
    "terminateAfterPreemption": Row(True),
    "terminationGracePeriodSeconds": Row(7, ("terminationGracePeriodSeconds", 7), (2**62,)),
    "tty": Row(True, ("tty", True), (), {"stdin": True}),
}

#: What distributed inferences have beside their roles.
GROUPS: dict[str, Row] = {
    "category": Row("Build", ELSEWHERE, ("Own", "build", "")),
    "leader": Row({"image": "x"}, ELSEWHERE, ()),
    "nodePools": Row(
        ["gpu"], ("kai.scheduler/node-pools", "gpu"), (At(["A100"], "nodePools[0]"), At([None], "nodePools[0]"))
    ),
    "preemptibility": Row("preemptible"),
    "priorityClass": Row("low", ELSEWHERE, ("hihg",)),
    "replicas": Row(3, ("replicas", 3)),
    "restartPolicy": Row("None", ("restartPolicy", "None")),
    "servingPort": Row({"port": 8000}, ("port", 8000), ({},)),
    "servingPort.port": Row(8001, ("containerPort", 8001)),
    "servingPort.protocol": Row("http"),
    "servingPort.authorizationType": Row("authenticatedUsers", ELSEWHERE, (At("authorizedUsers", "authorizedUsers"),)),
    "servingPort.authorizedUsers": Row(
        ["ann"], ELSEWHERE, ([], [" "], [None]), {"authorizationType": "authorizedUsers"}
    ),
    "servingPort.authorizedGroups": Row(["staff"], ELSEWHERE, ([], [""]), {"authorizationType": "authorizedGroups"}),
    "servingPort.exposeExternally": Row(False),
    "servingPort.exposedUrl": Row("mine.example.com", ELSEWHERE, ("javascript:alert(1)", "a b", "https://x:99999")),
    "startupPolicy": Row("LeaderReady", ("startupPolicy", "LeaderReady")),
    "worker": Row({"image": "x"}, ELSEWHERE, ()),
    "workers": Row(2, ("size", 3)),
}
#: Beside the spec.
REQUEST: dict[str, Row] = {
    "name": Row("w", ELSEWHERE, ("Upper", "a_b", "-a", "a" * 64)),
    "useGivenNameAsPrefix": Row(True),
    "projectId": Row("1"),
    "clusterId": Row(""),
    "templateId": Row(None),
    "spec": Row({"image": "x"}),
}
