"""Rules that stand only in the contract's prose: what breaks each, and what keeps it."""

from typing import Any

import pytest

from fairlead.kinds import KINDS
from fairlead.kinds.kind import spec_violations
from fairlead.model.spec.fields import build
from fairlead.model.spec.rules import SubmissionLimits

KIND = KINDS["training"]


def broken(**members: Any) -> list[str]:
    spec = build(KIND.spec, {"image": "x", **members})
    return [violation.path for violation in spec_violations(KIND, spec, "spec", SubmissionLimits())]


def compute(**members: Any) -> dict[str, Any]:
    return {"compute": members}


def storage(**members: Any) -> dict[str, Any]:
    return {"storage": members}


def variable(**members: Any) -> dict[str, Any]:
    return {"environmentVariables": [{"name": "A", **members}]}


def toleration(**members: Any) -> dict[str, Any]:
    return {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", **members}]}


def expression(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}


VAR = "spec.environmentVariables[0]"
PVC = "spec.storage.pvc[0]"
TOL = "spec.tolerations[0]"
EXPR = "spec.nodeAffinityRequired.nodeSelectorTerms[0].matchExpressions[0]"
NEW = {"path": "/a", "claimInfo": {"size": "1G"}}

SHARED = {"compute": {"largeShmRequest": True}}

CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("a volume where shared memory is", {**SHARED, **storage(emptyDirVolume=[{"path": "//dev/shm/"}])},
     ["spec.storage.emptyDirVolume[0].path"]),
    ("an excluded volume there", {**SHARED, **storage(emptyDirVolume=[{"path": "/dev/shm", "exclude": True}])}, []),
    ("a volume there alone", storage(emptyDirVolume=[{"path": "/dev/shm"}]), []),
    ("the largest number to compare with", expression({"key": "a", "operator": "Gt", "values": [str(2**63 - 1)]}), []),
    ("a number that is too large", expression({"key": "a", "operator": "Lt", "values": [str(-(2**63))]}),
     [f"{EXPR}.values"]),
    ("a number with a sign in it", expression({"key": "a", "operator": "Gt", "values": ["--1"]}), [f"{EXPR}.values"]),
    ("no image", {"image": None}, ["spec.image"]),
    ("variable without name", {"environmentVariables": [{"value": "1"}]}, [f"{VAR}.name"]),
    ("variable without source", variable(), [VAR]),
    ("variable with an empty value", variable(value=""), []),
    ("variable with two sources", variable(value="1", secret={"name": "s", "key": "k"}), [VAR]),
    ("variable from a secret without key", variable(secret={"name": "s"}), [f"{VAR}.secret.key"]),
    ("variable from a secret", variable(secret={"name": "s", "key": "k"}), []),
    ("variable from a field that pods do not have", variable(podFieldRef={"path": "spec.hostname"}),
     [f"{VAR}.podFieldRef.path"]),
    ("variable from labels without a key", variable(podFieldRef={"path": "metadata.labels"}),
     [f"{VAR}.podFieldRef.path"]),
    ("variable from a label", variable(podFieldRef={"path": "metadata.labels['a/b']"}), []),
    ("variable from addresses", variable(podFieldRef={"path": "status.podIPs"}), []),
    ("variable from a field without path", variable(podFieldRef={}), [f"{VAR}.podFieldRef.path"]),
    ("excluded variable needs nothing else", variable(exclude=True), []),
    ("null item", {"environmentVariables": [None]}, []),
    ("equals sign in a variable's name", {"environmentVariables": [{"name": "A=B", "value": ""}]}, [f"{VAR}.name"]),
    ("label without name", {"labels": [{"value": "v"}]}, ["spec.labels[0].name"]),
    ("annotation without name", {"annotations": [{}]}, ["spec.annotations[0].name"]),
    ("portion without its type", compute(gpuPortionRequest=0.5), ["spec.compute.gpuPortionRequest"]),
    ("portion type without portion", compute(gpuRequestType="portion"), ["spec.compute.gpuPortionRequest"]),
    ("portion", compute(gpuRequestType="portion", gpuPortionRequest=0.5, gpuPortionLimit=1), []),
    ("portion above 1", compute(gpuRequestType="portion", gpuPortionRequest=1.5), ["spec.compute.gpuPortionRequest"]),
    ("portion limit below request", compute(gpuRequestType="portion", gpuPortionRequest=0.5, gpuPortionLimit=0.4),
     ["spec.compute.gpuPortionLimit"]),
    ("memory value with portion type",
     compute(gpuRequestType="portion", gpuPortionRequest=0.5, gpuMemoryRequest="1G"),
     ["spec.compute.gpuMemoryRequest"]),
    ("memory type without memory", compute(gpuRequestType="memory"), ["spec.compute.gpuMemoryRequest"]),
    ("memory on two devices", compute(gpuRequestType="memory", gpuMemoryRequest="1G", gpuDevicesRequest=2),
     ["spec.compute.gpuDevicesRequest"]),
    ("portion on two devices", compute(gpuRequestType="portion", gpuPortionRequest=0.5, gpuDevicesRequest=2), []),
    ("GPU memory limit below request", compute(gpuRequestType="memory", gpuMemoryRequest="2G", gpuMemoryLimit="1G"),
     ["spec.compute.gpuMemoryLimit"]),
    ("CPU limit below request", compute(cpuCoreRequest=2, cpuCoreLimit=1.5), ["spec.compute.cpuCoreLimit"]),
    ("CPU limit equal to request", compute(cpuCoreRequest=2, cpuCoreLimit=2), []),
    ("memory limit below request in other units", compute(cpuMemoryRequest="1Gi", cpuMemoryLimit="1G"),
     ["spec.compute.cpuMemoryLimit"]),
    ("memory that is no quantity", compute(cpuMemoryRequest="1..G"), ["spec.compute.cpuMemoryRequest"]),
    ("more cores than exist", compute(cpuCoreRequest=1e12), ["spec.compute.cpuCoreRequest"]),
    ("extended resource without name", compute(extendedResources=[{"quantity": "1"}]),
     ["spec.compute.extendedResources[0].resource"]),
    ("broken extended resource", compute(extendedResources=[{"resource": "a/r", "quantity": "500m"}]),
     ["spec.compute.extendedResources[0].quantity"]),
    ("new claim without size", storage(pvc=[{"path": "/a"}]), [f"{PVC}.claimInfo.size"]),
    ("new claim", storage(pvc=[NEW]), []),
    ("claim without path", storage(pvc=[{"claimInfo": {"size": "1G"}}]), [f"{PVC}.path"]),
    ("claim information of an existing claim", storage(pvc=[{**NEW, "existingPvc": True, "claimName": "c"}]),
     [f"{PVC}.claimInfo"]),
    ("existing claim without name", storage(pvc=[{"path": "/a", "existingPvc": True}]), [f"{PVC}.claimName"]),
    ("excluded claim", storage(pvc=[{"name": "a", "exclude": True}]), []),
    ("git without repository", storage(git=[{"path": "/a"}]), ["spec.storage.git[0].repository"]),
    ("git credentials without secret", storage(git=[{"path": "/a", "repository": "https://x/r", "secretRef": {}}]),
     ["spec.storage.git[0].secretRef.name"]),
    ("host paths of different propagation", storage(hostPath=[
        {"path": "/a", "mountPath": "/a"}, {"path": "/b", "mountPath": "/b", "mountPropagation": "HostToContainer"}]),
     ["spec.storage.hostPath"]),
    ("host paths of one propagation", storage(hostPath=[
        {"path": "/a", "mountPath": "/a"}, {"path": "/b", "mountPath": "/b", "mountPropagation": "None"}]), []),
    ("host path that leads out", storage(hostPath=[{"path": "/a/../b", "mountPath": "/a"}]),
     ["spec.storage.hostPath[0].path"]),
    ("host path with dots in a name", storage(hostPath=[{"path": "/a..b/..c", "mountPath": "/a"}]), []),
    ("unknown medium", storage(emptyDirVolume=[{"path": "/a", "medium": "Disk"}]),
     ["spec.storage.emptyDirVolume[0].medium"]),
    ("nfs without anything", storage(nfs=[{}]),
     [f"spec.storage.nfs[0].{name}" for name in ("path", "server", "mountPath")]),
    ("local seccomp profile", {"security": {"seccompProfileType": "Localhost"}}, ["spec.security.seccompProfileType"]),
    ("negative user", {"security": {"runAsUid": -1}}, ["spec.security.runAsUid"]),
    ("groups that are no numbers", {"security": {"supplementalGroups": "a,b"}}, ["spec.security.supplementalGroups"]),
    ("groups", {"security": {"supplementalGroups": "1, 2"}}, []),
    ("groups by semicolons", {"security": {"supplementalGroups": "2;3"}}, ["spec.security.supplementalGroups"]),
    ("group beyond all", {"security": {"supplementalGroups": "4294967295"}}, ["spec.security.supplementalGroups"]),
    ("the image's groups", {"security": {"supplementalGroups": ""}}, []),
    ("user beyond all", {"security": {"runAsUid": 2**32 - 1}}, ["spec.security.runAsUid"]),
    ("largest user", {"security": {"runAsUid": 2**32 - 2}}, []),
    ("custom ids without ids", {"security": {"uidGidSource": "custom"}}, ["spec.security.runAsUid"]),
    ("custom group alone", {"security": {"uidGidSource": "custom", "runAsGid": 5}}, []),
    ("no memory at all", compute(cpuMemoryRequest="0"), []),
    ("thousandths of a byte", compute(cpuMemoryRequest="500m"), ["spec.compute.cpuMemoryRequest"]),
    ("a GPU without memory", compute(gpuRequestType="memory", gpuMemoryRequest="0"), ["spec.compute.gpuMemoryRequest"]),
    ("claim of nothing", storage(pvc=[{"path": "/a", "claimInfo": {"size": "0"}}]), [f"{PVC}.claimInfo.size"]),
    ("claim of a part of a byte", storage(pvc=[{"path": "/a", "claimInfo": {"size": "500m"}}]),
     [f"{PVC}.claimInfo.size"]),
    ("scratch space of nothing", storage(emptyDirVolume=[{"path": "/a", "sizeLimit": "0"}]),
     ["spec.storage.emptyDirVolume[0].sizeLimit"]),
    ("claim that nobody can mount", storage(pvc=[{"path": "/a", "claimInfo": {
        "size": "1G", "accessModes": {"readWriteOnce": False}}}]), [f"{PVC}.claimInfo.accessModes"]),
    ("claim for many", storage(pvc=[{"path": "/a", "claimInfo": {
        "size": "1G", "accessModes": {"readWriteOnce": False, "readWriteMany": True}}}]), []),
    ("relative mount path", storage(pvc=[{"path": "a/b", "claimInfo": {"size": "1G"}}]), [f"{PVC}.path"]),
    ("mount path with a colon", storage(emptyDirVolume=[{"path": "/a:b"}]), ["spec.storage.emptyDirVolume[0].path"]),
    ("mount path that leads out", storage(emptyDirVolume=[{"path": "/a/../../etc"}]),
     ["spec.storage.emptyDirVolume[0].path"]),
    ("mounted over everything", storage(emptyDirVolume=[{"path": "/"}]), ["spec.storage.emptyDirVolume[0].path"]),
    ("two volumes at one path", storage(pvc=[NEW], emptyDirVolume=[{"path": "/a/"}]),
     ["spec.storage.emptyDirVolume[0].path"]),
    ("an excluded volume takes no path", storage(pvc=[NEW], emptyDirVolume=[{"path": "/a", "exclude": True}]), []),
    ("two volumes of one name", storage(emptyDirVolume=[{"name": "n", "path": "/a"}, {"name": "n", "path": "/b"}]),
     ["spec.storage.emptyDirVolume[1].name"]),
    ("two URLs of one name", {"relatedUrls": [{"name": "n", "url": "https://a", "type": "t"}] * 2},
     ["spec.relatedUrls[1].name"]),
    ("two variables of one name", {"environmentVariables": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
     ["spec.environmentVariables[1].name"]),
    ("a resource twice", compute(extendedResources=[{"resource": "a/b"}, {"resource": "a/b"}]),
     ["spec.compute.extendedResources[1].resource"]),
    ("two volumes without name", storage(emptyDirVolume=[{"path": "/a"}, {"path": "/b"}]), []),
    ("config map's sub path that leads out", storage(configMapVolume=[
        {"configMap": "c", "mountPath": "/a", "subPath": "../x"}]), ["spec.storage.configMapVolume[0].subPath"]),
    ("config map's absolute sub path", storage(configMapVolume=[
        {"configMap": "c", "mountPath": "/a", "subPath": "/x"}]), ["spec.storage.configMapVolume[0].subPath"]),
    ("relative host path", storage(hostPath=[{"path": "a", "mountPath": "/a"}]), ["spec.storage.hostPath[0].path"]),
    ("service that is no URL", storage(s3=[{"bucket": "b", "path": "/a", "url": "minio"}]), ["spec.storage.s3[0].url"]),
    ("service with a port", storage(s3=[{"bucket": "b", "path": "/a", "url": "http://[::1]:9000"}]), []),
    ("service of another scheme", storage(s3=[{"bucket": "b", "path": "/a", "url": "ftp://x"}]),
     ["spec.storage.s3[0].url"]),
    ("repository that is no URL", storage(git=[{"path": "/a", "repository": "r"}]), ["spec.storage.git[0].repository"]),
    ("repository by ssh", storage(git=[{"path": "/a", "repository": "git@github.com:o/n.git"}]), []),
    ("secret key that leads out", variable(secret={"name": "s", "key": ".."}), [f"{VAR}.secret.key"]),
    ("secret key with a dot", variable(secret={"name": "s", "key": ".dockerconfigjson"}), []),
    ("relative working directory", {"workingDir": "src"}, ["spec.workingDir"]),
    ("node type that is no label", {"nodeType": "a b"}, ["spec.nodeType"]),
    ("label that is none", {"labels": [{"name": "a b", "value": "?"}]},
     ["spec.labels[0].name", "spec.labels[0].value"]),
    ("label of a domain", {"labels": [{"name": "example.com/a", "value": ""}]}, []),
    ("annotation of a wrong domain", {"annotations": [{"name": "Example_/a"}]}, ["spec.annotations[0].name"]),
    ("related URL that runs a script", {"relatedUrls": [{"url": "javascript:alert(1)", "type": "t"}]},
     ["spec.relatedUrls[0].url"]),
    ("completions that are never reached", {"completions": 3, "restartPolicy": "Always"}, ["spec.completions"]),
    ("restarts for ever", {"restartPolicy": "Always"}, []),
    ("seconds without NoExecute", toleration(seconds=3), [f"{TOL}.seconds"]),
    ("seconds with NoExecute", toleration(effect="NoExecute", seconds=3), []),
    ("Equal without value", toleration(operator="Equal"), [f"{TOL}.value"]),
    ("Exists with value", toleration(value="v"), [f"{TOL}.value"]),
    ("toleration without effect", toleration(effect=None), [f"{TOL}.effect"]),
    ("In without values", expression({"key": "k", "operator": "In"}), [f"{EXPR}.values"]),
    ("Exists with values", expression({"key": "k", "operator": "Exists", "values": ["a"]}), [f"{EXPR}.values"]),
    ("Gt with a word", expression({"key": "k", "operator": "Gt", "values": ["a"]}), [f"{EXPR}.values"]),
    ("Gt with two numbers", expression({"key": "k", "operator": "Gt", "values": ["1", "2"]}), [f"{EXPR}.values"]),
    ("Lt with a number", expression({"key": "k", "operator": "Lt", "values": ["-3"]}), []),
    ("In with what is no label", expression({"key": "k", "operator": "In", "values": ["a", "b c"]}),
     [f"{EXPR}.values[1]"]),
    ("affinity to no key", expression({"key": "", "operator": "Exists"}), [f"{EXPR}.key"]),
    ("affinity without terms", {"nodeAffinityRequired": {"nodeSelectorTerms": []}},
     ["spec.nodeAffinityRequired.nodeSelectorTerms"]),
    ("affinity with an empty term", expression(),
     ["spec.nodeAffinityRequired.nodeSelectorTerms[0].matchExpressions"]),
    ("affinity with an empty term beside another", {"nodeAffinityRequired": {"nodeSelectorTerms": [
        {}, None, {"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}, []),
    ("toleration of no key", toleration(key=""), [f"{TOL}.key"]),
    ("pod affinity without key", {"podAffinity": {"type": "Required"}}, ["spec.podAffinity.key"]),
    ("pod affinity to no key", {"podAffinity": {"type": "Required", "key": ""}}, ["spec.podAffinity.key"]),
    ("URL for users and groups",
     {"exposedUrls": [{"container": 1, "authorizedUsers": ["a"], "authorizedGroups": ["b"]}]},
     ["spec.exposedUrls[0]"]),
    ("URL whose type chooses", {"exposedUrls": [{"container": 1, "authorizedUsers": ["a"], "authorizedGroups": ["b"],
                                                 "authorizationType": "authorizedUsers"}]}, []),
    ("URL for users of no name", {"exposedUrls": [{"container": 1, "authorizedUsers": ["a", ""]}]},
     ["spec.exposedUrls[0].authorizedUsers"]),
    ("URL for a group of no name", {"exposedUrls": [{"container": 1, "authorizedGroups": [" "]}]},
     ["spec.exposedUrls[0].authorizedGroups"]),
    ("related URL of no type", {"relatedUrls": [{"url": "https://u", "type": ""}]}, ["spec.relatedUrls[0].type"]),
    ("URL of no port", {"exposedUrls": [{"container": 0}]}, ["spec.exposedUrls[0].container"]),
    ("port without service type", {"ports": [{"container": 80}]}, ["spec.ports[0].serviceType"]),
    ("NodePort of no node", {"ports": [{"container": 80, "serviceType": "NodePort", "external": 8080}]},
     ["spec.ports[0].external"]),
    ("NodePort that is no port", {"ports": [{"container": 80, "serviceType": "NodePort", "external": 0}]},
     ["spec.ports[0].external"]),
    ("last NodePort", {"ports": [{"container": 80, "serviceType": "NodePort", "external": 32767}]}, []),
    ("load balancer's port", {"ports": [{"container": 80, "serviceType": "LoadBalancer", "external": 8080}]}, []),
    ("probe without port", {"probes": {"readiness": {"handler": {"httpGet": {}}}}},
     ["spec.probes.readiness.handler.httpGet.port"]),
    ("probe without handler", {"probes": {"readiness": {}}}, ["spec.probes.readiness.handler"]),
    ("related URL without type", {"relatedUrls": [{"url": "https://u"}]}, ["spec.relatedUrls[0].type"]),
    ("terminal without stdin", {"tty": True}, ["spec.tty"]),
    ("terminal", {"tty": True, "stdin": True}, []),
    ("open quote", {"command": "sh 'x", "args": '"'}, ["spec.command", "spec.args"]),
    ("unknown priority", {"priorityClass": "hihg"}, ["spec.priorityClass"]),
    ("portion of no device",
     {"compute": {"gpuRequestType": "portion", "gpuPortionRequest": 0.5, "gpuDevicesRequest": 0}},
     ["spec.compute.gpuDevicesRequest"]),
    ("existing claim that goes with the workload",
     {"storage": {"pvc": [{"path": "/x", "existingPvc": True, "claimName": "c", "ephemeral": True}]}},
     ["spec.storage.pvc[0].ephemeral"]),
    ("unknown category", {"category": "Trian"}, ["spec.category"]),
    ("category of another kind", {"category": "Build"}, []),
    ("node pools that cannot exist", {"nodePools": ["gpu", "", "two words", "-x", "a/b"]},
     ["spec.nodePools[1]", "spec.nodePools[2]", "spec.nodePools[3]", "spec.nodePools[4]"]),
    ("older priority", {"priorityClass": "train"}, []),
    ("no completions", {"completions": 0}, ["spec.completions"]),
    ("too many completions", {"completions": 100_001}, ["spec.completions"]),
    ("as many as are allowed", {"completions": 100_000, "parallelism": 100_000}, []),
    ("parallelism above completions", {"completions": 2, "parallelism": 3}, ["spec.parallelism"]),
    ("no parallelism", {"parallelism": 0}, ["spec.parallelism"]),
    ("negative backoff limit", {"backoffLimit": -1}, ["spec.backoffLimit"]),
    ("backoff limit 0", {"backoffLimit": 0}, []),
    ("negative auto-deletion", {"autoDeletionTimeAfterCompletionSeconds": -1},
     ["spec.autoDeletionTimeAfterCompletionSeconds"]),
    ("endless grace", {"terminationGracePeriodSeconds": 2**60}, ["spec.terminationGracePeriodSeconds"]),
]  # fmt: skip


@pytest.mark.parametrize(("members", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_rule(members: dict[str, Any], want: list[str]) -> None:
    assert broken(**members) == want
