"""Every property of a leader and of a worker, seen from inside each: a table over the declarations, none left out."""

import json
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from fairlead.engines.local.linux import cgroups
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import Field, fields_of
from tests.e2e.fields import conditions
from tests.e2e.server import Server, until
from tests.e2e.several import GROUPS, delete, events, needs_networks, program, request, serve, until_pods

pytestmark = needs_networks
ROLES = ("leader", "worker")
NODES = (
    "plain:cpu=8,memory=8Gi,gpus=8,gpu-memory=16Gi,example.com/dongle=4,labels=zone=a",
    "fast:cpu=8,memory=8Gi,gpus=0,labels=zone=b;run.ai/type=fast",
    "kept:cpu=8,memory=8Gi,gpus=0,labels=zone=c,taints=team=blue:NoSchedule",
    "slices:cpu=2,memory=2Gi,gpus=0,nvidia.com/mig-1g.5gb=2,labels=zone=d",
)


class Case(NamedTuple):
    """What both roles are given, what they look at, and what they must see."""

    paths: str
    spec: dict[str, Any]
    script: str
    want: str


def variable(name: str, **source: Any) -> dict[str, Any]:
    return {"name": name, **source}


def affinity(zone: str) -> dict[str, Any]:
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    return {"nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


TOLERATION = {"name": "t", "operator": "Equal", "key": "team", "value": "blue", "effect": "NoSchedule"}
SHARE = "echo $RUNAI_NUM_OF_GPUS $GPU_PORTION $RUNAI_GPU_MEMORY_LIMIT"
AFFINITY = "nodeAffinityRequired.nodeSelectorTerms[].matchExpressions[]"
CUSTOM = {"uidGidSource": "custom", "runAsUid": 61_234, "runAsGid": 61_235, "supplementalGroups": "61236"}

SEEN = {
    "words": Case("command args", {"command": "sh -c", "args": "'echo $0 $1; exec sleep 600' a 'b c'"}, "", "a b c"),
    "folder": Case("workingDir", {"workingDir": "/usr/lib"}, "pwd", "/usr/lib"),
    "home": Case("createHomeDir", {"createHomeDir": True}, "touch ~/x && ls ~", "x"),
    "variables": Case(
        "environmentVariables[].name environmentVariables[].value environmentVariables[].exclude "
        "environmentVariables[].secret.name environmentVariables[].secret.key environmentVariables[].configMap.name "
        "environmentVariables[].configMap.key environmentVariables[].userCredential.name "
        "environmentVariables[].userCredential.key environmentVariables[].podFieldRef.path",
        {
            "environmentVariables": [
                variable("A", value="plain"),
                variable("B", secret={"name": "token", "key": "value"}),
                variable("C", configMap={"name": "settings", "key": "mode"}),
                variable("D", userCredential={"name": "mine", "key": "password"}),
                variable("E", podFieldRef={"path": "metadata.namespace"}),
                variable("F", value="no", exclude=True),
            ]
        },
        "echo $A $B $C $D $E ${F-none}",
        "plain of-secret of-map of-credential runai-default none",
    ),
    "labels": Case(
        "labels[].name labels[].value labels[].exclude annotations[].name annotations[].value annotations[].exclude",
        {
            "labels": [{"name": "l", "value": "one"}, {"name": "m", "value": "no", "exclude": True}],
            "annotations": [{"name": "a", "value": "two"}, {"name": "b", "value": "no", "exclude": True}],
            "environmentVariables": [
                variable(letter.upper(), podFieldRef={"path": f"metadata.{kind}['{letter}']"})
                for kind, letter in (("labels", "l"), ("labels", "m"), ("annotations", "a"), ("annotations", "b"))
            ],
        },
        "echo $L $A [$M$B]",
        "one two []",
    ),
    "devices": Case("compute.gpuDevicesRequest", {"compute": {"gpuDevicesRequest": 2}}, SHARE, "2 1"),
    "portion": Case(
        "compute.gpuRequestType compute.gpuPortionRequest compute.gpuPortionLimit",
        {"compute": {"gpuRequestType": "portion", "gpuPortionRequest": 0.25, "gpuPortionLimit": 0.5}},
        SHARE,
        f"0.25 0.25 {8 * 2**30}",
    ),
    "gpu memory": Case(
        "compute.gpuMemoryRequest compute.gpuMemoryLimit",
        {"compute": {"gpuRequestType": "memory", "gpuMemoryRequest": "4Gi", "gpuMemoryLimit": "8Gi"}},
        SHARE,
        "0.25 0.25 8Gi",
    ),
    "slice": Case("compute.migProfile", {"compute": {"migProfile": "1g.5gb"}}, "echo $NODE_NAME", "slices"),
    "shared memory": Case(
        "compute.largeShmRequest",
        {"compute": {"largeShmRequest": True}},
        "head -c 100M /dev/zero >/dev/shm/large && rm /dev/shm/large && echo fits",
        "fits",
    ),
    "type": Case("nodeType", {"nodeType": "fast"}, "echo $NODE_NAME", "fast"),
    "affinity": Case(
        f"{AFFINITY}.key {AFFINITY}.operator {AFFINITY}.values[]", affinity("b"), "echo $NODE_NAME", "fast"
    ),
    "together": Case(
        "podAffinity.type podAffinity.key",
        {"podAffinity": {"type": "Required", "key": "zone"}, "compute": {"cpuCoreRequest": 1}, **affinity("a")},
        "echo $NODE_NAME",
        "plain",
    ),
    "tolerations": Case(
        "tolerations[].operator tolerations[].key tolerations[].value tolerations[].effect tolerations[].exclude",
        {"tolerations": [TOLERATION, {**TOLERATION, "name": "u", "key": "x", "exclude": True}], **affinity("c")},
        "echo $NODE_NAME",
        "kept",
    ),
    "new claim": Case(
        "storage.pvc[].path storage.pvc[].claimInfo.size storage.pvc[].claimInfo.accessModes.readWriteOnce "
        "storage.pvc[].claimInfo.accessModes.readWriteMany storage.pvc[].claimInfo.storageClass storage.pvc[].exclude "
        "storage.pvc[].ephemeral",
        {
            "storage": {
                "pvc": [
                    {
                        "path": "/claim",
                        "ephemeral": False,
                        "claimInfo": {
                            "size": "20Mi",
                            "storageClass": "local",
                            "accessModes": {"readWriteOnce": True, "readWriteMany": True},
                        },
                    },
                    {"path": "/out", "claimInfo": {"size": "1Mi"}, "exclude": True},
                ]
            }
        },
        "touch /claim/x && ls /claim; [ -e /out ] || echo none",
        "x none",
    ),
    "old claim": Case(
        "storage.pvc[].existingPvc storage.pvc[].claimName storage.pvc[].readOnly",
        {"storage": {"pvc": [{"path": "/old", "existingPvc": True, "claimName": "shelf", "readOnly": True}]}},
        "cat /old/word; touch /old/y 2>/dev/null || echo kept",
        "written kept",
    ),
    "read-only claim": Case(
        "storage.pvc[].claimInfo.accessModes.readOnlyMany",
        {"storage": {"pvc": [{"path": "/ro", "claimInfo": {"size": "1Mi", "accessModes": {"readOnlyMany": True}}}]}},
        "touch /ro/x 2>/dev/null || echo read-only",
        "read-only",
    ),
    "config map": Case(
        "storage.configMapVolume[].configMap storage.configMapVolume[].mountPath "
        "storage.configMapVolume[].defaultMode storage.configMapVolume[].exclude",
        {
            "storage": {
                "configMapVolume": [
                    {"configMap": "settings", "mountPath": "/settings", "defaultMode": "0440"},
                    {"configMap": "settings", "mountPath": "/no", "exclude": True},
                ]
            }
        },
        "cat /settings/mode; echo; stat -L -c %a /settings/mode; [ -e /no ] || echo none",
        "of-map 440 none",
    ),
    "one key": Case(
        "storage.configMapVolume[].subPath",
        {"storage": {"configMapVolume": [{"configMap": "settings", "mountPath": "/one", "subPath": "mode"}]}},
        "cat /one",
        "of-map",
    ),
    "secret": Case(
        "storage.secretVolume[].secret storage.secretVolume[].mountPath storage.secretVolume[].defaultMode "
        "storage.secretVolume[].exclude",
        {
            "storage": {
                "secretVolume": [
                    {"secret": "token", "mountPath": "/token", "defaultMode": "0400"},
                    {"secret": "token", "mountPath": "/no", "exclude": True},
                ]
            }
        },
        "cat /token/value; echo; stat -L -c %a /token/value; [ -e /no ] || echo none",
        "of-secret 400 none",
    ),
    "empty folder": Case(
        "storage.emptyDirVolume[].path storage.emptyDirVolume[].medium storage.emptyDirVolume[].sizeLimit "
        "storage.emptyDirVolume[].exclude",
        {
            "storage": {
                "emptyDirVolume": [
                    {"path": "/scratch", "medium": "Memory", "sizeLimit": "1Mi"},
                    {"path": "/no", "exclude": True},
                ]
            }
        },
        "stat -f -c %T /scratch; head -c 2M /dev/zero >/scratch/x 2>/dev/null || echo full; [ -e /no ] || echo none",
        "tmpfs full none",
    ),
    "identity": Case(
        "security.uidGidSource security.runAsUid security.runAsGid security.supplementalGroups security.runAsNonRoot",
        {"security": {**CUSTOM, "runAsNonRoot": True}},
        "id -u; id -G",
        "61234 61235 61236",
    ),
    "read-only root": Case(
        "security.readOnlyRootFilesystem",
        {"security": {"readOnlyRootFilesystem": True}},
        "touch /tmp/x 2>/dev/null || echo read-only",
        "read-only",
    ),
    "capabilities": Case(
        "security.capabilities[]", {"security": {"capabilities": ["SYS_NICE"]}}, "nice -n -5 echo nicer", "nicer"
    ),
    "filter": Case(
        "security.seccompProfileType",
        {"security": {"seccompProfileType": "RuntimeDefault"}},
        "grep Seccomp: /proc/self/status | cut -f2",
        "2",
    ),
    "cpu": Case(
        "compute.cpuCoreLimit",
        {"compute": {"cpuCoreLimit": 0.2}},
        """python3 -c '
import time
b, u = time.monotonic(), time.process_time()
while time.monotonic() - b < 1.5: pass
print("held" if time.process_time() - u < 0.6 else "free")'""",
        "held",
    ),
}

#: What no node has room for: both roles wait for it, each for its own sake.
WAITS: dict[str, tuple[str, dict[str, Any]]] = {
    "cpu": ("compute.cpuCoreRequest", {"compute": {"cpuCoreRequest": 9}}),
    "memory": ("compute.cpuMemoryRequest", {"compute": {"cpuMemoryRequest": "9Gi"}}),
    "extended": (
        "compute.extendedResources[].resource compute.extendedResources[].quantity compute.extendedResources[].exclude",
        {
            "compute": {
                "extendedResources": [
                    {"resource": "example.com/dongle", "quantity": "5"},
                    {"resource": "example.com/none", "quantity": "1", "exclude": True},
                ]
            }
        },
    ),
}
#: Words that are kept and shown, or that a condition says to have no effect on this machine.
KEPT: dict[str, Any] = {
    "image": "registry.example.com/x:1",
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry", "userCredential": False, "exclude": False}],
    "environmentVariables": [{"name": "A", "value": "x", "description": "for people"}],
    "tolerations": [{"name": "t", "operator": "Exists", "key": "k", "effect": "NoExecute", "seconds": 5}],
    "storage": {
        "pvc": [
            {
                "name": "p",
                "path": "/p",
                "dataSharing": False,
                "claimInfo": {
                    "size": "1Mi",
                    "volumeMode": "Filesystem",
                    "addedAttrValues": [{"key": "k", "value": "v"}],
                },
            }
        ],
        "configMapVolume": [{"name": "c", "configMap": "settings", "mountPath": "/c"}],
        "secretVolume": [{"name": "s", "secret": "token", "mountPath": "/s"}],
        "emptyDirVolume": [{"name": "e", "path": "/e"}],
    },
}
PROBE = "probes.readiness"
PROBED = {
    f"{PROBE}.{name}"
    for name in (
        "initialDelaySeconds",
        "periodSeconds",
        "timeoutSeconds",
        "successThreshold",
        "failureThreshold",
        "handler.httpGet.path",
        "handler.httpGet.port",
        "handler.httpGet.host",
        "handler.httpGet.scheme",
    )
}
LIMITED = {"compute.cpuMemoryLimit"}


def leaves(struct: Any, before: str = "") -> Iterator[str]:
    """The paths of all properties that carry a value."""
    for field in fields_of(struct):
        path = before + field.rest + ("[]" if field.is_list else "")
        if field.struct is not None:
            yield from leaves(field.struct, f"{path}.")
        else:
            yield path


def paths_in(value: Any, before: str = "") -> Iterator[str]:
    for name, inner in value.items():
        items = inner if isinstance(inner, list) else [inner]
        path = f"{before}{name}" + ("[]" if isinstance(inner, list) else "")
        for item in items:
            if isinstance(item, dict):
                yield from paths_in(item, f"{path}.")
            else:
                yield path


def role_of(kind: str, name: str) -> Field:
    return next(field for field in fields_of(KINDS[kind].spec) if field.attribute == name)


@pytest.mark.parametrize("role", ROLES)
def test_no_property_is_left_out(role: str) -> None:
    declared = set(leaves(role_of("distributed-inference", role).struct))
    tried = {path for case in SEEN.values() for path in case.paths.split()}
    tried |= {path for paths, _ in WAITS.values() for path in paths.split()}
    assert declared - tried - set(paths_in(KEPT)) - PROBED - LIMITED == set()
    assert tried - declared == set()


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A shared server, so that its pods are isolated, with nodes to choose from and objects to name."""
    flags = [flag for node in NODES for flag in ("--node", node)]
    allowed = ("--allow", "capability=SYS_NICE")
    server = Server(tmp_path_factory.mktemp("groups") / "data", "--retry-delay", "20", *flags, *allowed).start()
    for path, body in (
        ("secrets", {"name": "token", "projectId": "1", "data": {"value": "of-secret"}}),
        ("secrets", {"name": "registry", "projectId": "1", "data": {".dockerconfigjson": '{"auths": {}}'}}),
        ("config-maps", {"name": "settings", "projectId": "1", "data": {"mode": "of-map"}}),
        ("user-credentials", {"name": "mine", "data": {"password": "of-credential"}}),
        ("persistent-volume-claims", {"name": "shelf", "projectId": "1", "size": "10Mi"}),
    ):
        answer = server.call("POST", f"/api/v1/{path}", body)
        assert answer.status == 201, answer
    claim = {"pvc": [{"path": "/shelf", "existingPvc": True, "claimName": "shelf"}]}
    wrote = server.run("writes", "sh", "-c 'echo written >/shelf/word'", storage=claim)
    server.until_phase(wrote, "Completed")
    yield server
    server.close()


@pytest.mark.parametrize("case", SEEN.values(), ids=list(SEEN))
def test_seen_from_inside_leader_and_worker(machines: Server, case: Case) -> None:
    if case.paths == "compute.cpuCoreLimit" and not has_group("cpu"):
        pytest.skip("limits are held by control groups, which cannot be written here")
    script = f"{{ {case.script}\n}} | tr '\\n' ' '; echo; exec sleep 600"
    given = {"image": "x", "command": "sh -c", "args": shlex.quote(script)} | case.spec
    name = "seen-" + str(list(SEEN.values()).index(case))
    workload_id = serve(machines, name, leader=given, worker=given, workers=1)
    until_pods(machines, workload_id, f"{name}-0", f"{name}-0-1")
    for pod in (f"{name}-0", f"{name}-0-1"):
        assert said_by(machines, workload_id, pod) == case.want, pod
    machines.until_phase(workload_id, "Running")
    delete(machines, workload_id)


def said_by(server: Server, workload_id: str, pod: str) -> str:
    text: str = until(lambda: server.logs(workload_id, f"?pod={pod}"), f"the words of {pod}")
    return " ".join(text.split())


def has_group(name: str) -> bool:
    observed = cgroups.observe()
    return observed is not None and name in observed.parents


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("paths", "spec"), WAITS.values(), ids=list(WAITS))
def test_a_group_waits_for_what_one_role_asks(machines: Server, role: str, paths: str, spec: dict[str, Any]) -> None:
    modest = {"image": "x", "command": "sleep 600"}
    name = f"waits-{role}-{[*WAITS.values()].index((paths, spec))}"
    workload_id = serve(machines, name, **{"workers": 1, "leader": modest, "worker": modest, role: modest | spec})
    until(lambda: events(machines, workload_id, "Unschedulable"), "a reason to wait")
    assert machines.phase(workload_id) == "Pending"
    assert machines.workload(workload_id)["runningPods"] == 0
    delete(machines, workload_id)


@pytest.mark.parametrize("role", ROLES)
def test_memory_is_limited_in_each_role(machines: Server, role: str) -> None:
    hungry = "import time; held = [(b'x' * 2**23, time.sleep(0.01)) for _ in range(64)]; time.sleep(600)"
    limited = program(hungry, compute={"cpuMemoryLimit": "64Mi"})
    roles = {each: program("import time; time.sleep(600)") for each in ROLES} | {role: limited}
    workload_id = serve(machines, f"hungry-{role}", workers=1, **roles)
    killed = until(lambda: events(machines, workload_id, "OOMKilled"), "its end")
    pod = f"hungry-{role}-0" if role == "leader" else f"hungry-{role}-0-1"
    assert {event["involvedObject"]["name"] for event in killed} == {pod}
    delete(machines, workload_id)


#: Tells of every question that it is asked: how long after the process began, where, for which host; the second one
#: hangs until the third comes, the third and fourth are answered badly.
ASKED = """
import http.server, os, threading, time
ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
began, asked, third = ticks / os.sysconf("SC_CLK_TCK"), [], threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(round(time.clock_gettime(time.CLOCK_BOOTTIME) - began, 2))
        number = len(asked)
        print(asked[-1], self.path, self.headers["Host"], flush=True)
        if number == 2:
            third.wait()
        third.set() if number == 3 else None
        try:
            self.send_response(503 if number in (3, 4) else 200)
            self.end_headers()
        except OSError:
            pass
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("", 8111), Handler).serve_forever()
"""


@pytest.mark.parametrize("role", ROLES)
def test_probes_are_asked_in_each_role(machines: Server, role: str) -> None:
    get = {"port": 8111, "path": "/well", "host": "probe.example.com", "scheme": "HTTP"}
    times = {"initialDelaySeconds": 2, "periodSeconds": 2, "timeoutSeconds": 1, "successThreshold": 2}
    probe = {"readiness": {**times, "failureThreshold": 1, "handler": {"httpGet": get}}}
    roles = {each: program("import time; time.sleep(600)") for each in ROLES} | {role: program(ASKED, probes=probe)}
    name = f"asked-{role}"
    workload_id = serve(machines, name, workers=1, **roles)
    pod = f"{name}-0" if role == "leader" else f"{name}-0-1"
    machines.until_phase(workload_id, "Running")

    def told() -> list[str]:
        found = machines.call("GET", f"/api/v1/workloads/{workload_id}/logs?pod={pod}")
        return found.body.decode().splitlines() if found.status == 200 else []

    until(lambda: len(told()) >= 8, "questions enough")
    at = [float(line.split()[0]) for line in told()]
    assert {line.split(maxsplit=1)[1] for line in told()} == {"/well probe.example.com"}
    assert at[0] >= 2, "the first question waits for the initial delay"
    # That there is a third question says that the second, which hangs until then, was given up.
    assert at[7] - at[5] > 3, "once it was ready with the sixth, the period holds"
    delete(machines, workload_id)


def test_stored_texts_come_back_as_they_were_sent(machines: Server) -> None:
    given = KEPT | {"command": "sleep 600"}
    body = request(machines, "kept", {"leader": given, "worker": given, "workers": 1, "replicas": 1})
    answer = machines.call("POST", GROUPS, body)
    assert answer.status == 202, answer
    workload_id = answer.json["workloadId"]
    found = machines.call("GET", f"{GROUPS}/{workload_id}").json["spec"]
    for role in ROLES:
        assert json.loads(json.dumps(found[role])) == given
    machines.until_phase(workload_id, "Running")
    told = {f"{role}.{member}" for role in ROLES for member in ("image", "imagePullPolicy")}
    assert told <= set(conditions(machines, workload_id, "NotEnforced"))
    delete(machines, workload_id)
