"""Fields as pods of a cluster see them: what each is given, what it looks at from inside, and what it must see.

Cases of one bundle share a pod, so that all of them take a few pods and not a hundred.
"""

import shlex
from typing import Any, NamedTuple


class Case(NamedTuple):
    #: REST paths of the fields whose effect is seen.
    paths: str
    spec: dict[str, Any]
    script: str
    want: str


def variable(name: str, **source: Any) -> dict[str, Any]:
    return {"name": name, **source}


#: At the end of a script: stays, and ends at once when it is told to, as the first process of a container does not.
STAYS = "trap 'exit 0' TERM; sleep 600 & wait"
#: The same before a program of Python.
ENDS = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
GROUP = "/sys/fs/cgroup"
MASK = "awk '/^{}:/ {{print $2}}' /proc/self/status"

PLAIN = {
    "words": Case("command args", {}, "echo $0 $1", "first second word"),
    "image": Case("image", {"image": "python:3.11"}, "python3 -V | cut -d. -f1", "Python 3"),
    "folder": Case("workingDir", {"workingDir": "/var/tmp"}, "pwd", "/var/tmp"),
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
                variable("E", podFieldRef={"path": "spec.nodeName"}),
                variable("F", value="no", exclude=True),
            ]
        },
        "echo $A $B $C $D $E ${F-none}",
        "plain of-secret of-map of-credential worker-1 none",
    ),
    "labels": Case(
        "labels[].name labels[].value labels[].exclude annotations[].name annotations[].value annotations[].exclude",
        {
            "labels": [{"name": "l", "value": "one"}, {"name": "m", "value": "no", "exclude": True}],
            "annotations": [{"name": "a", "value": "two"}, {"name": "b", "value": "no", "exclude": True}],
            "environmentVariables": [
                variable(f"{kind[:5].upper()}_{letter.upper()}", podFieldRef={"path": f"metadata.{kind}['{letter}']"})
                for kind, letter in (("labels", "l"), ("labels", "m"), ("annotations", "a"), ("annotations", "b"))
            ],
        },
        "echo $LABEL_L $ANNOT_A [$LABEL_M$ANNOT_B]",
        "one two []",
    ),
    "processors": Case(
        "compute.cpuCoreRequest compute.cpuCoreLimit",
        {"compute": {"cpuCoreRequest": 0.25, "cpuCoreLimit": 0.5}},
        f"cat {GROUP}/cpu.max {GROUP}/cpu/cpu.cfs_quota_us {GROUP}/cpu/cpu.shares 2>/dev/null",
        "50000 256",
    ),
    "memory": Case(
        "compute.cpuMemoryLimit compute.cpuMemoryRequest",
        {"compute": {"cpuMemoryLimit": "512Mi", "cpuMemoryRequest": "64Mi"}},
        f"cat {GROUP}/memory.max {GROUP}/memory/memory.limit_in_bytes 2>/dev/null",
        "536870912",
    ),
    "shared memory": Case(
        "compute.largeShmRequest",
        {"compute": {"largeShmRequest": True}},
        "dd if=/dev/zero of=/dev/shm/large bs=1M count=100 2>/dev/null && rm /dev/shm/large && echo fits",
        "fits",
    ),
    "config map": Case(
        "storage.configMapVolume[].configMap storage.configMapVolume[].mountPath "
        "storage.configMapVolume[].defaultMode storage.configMapVolume[].exclude",
        {
            "storage": {
                "configMapVolume": [
                    {"configMap": "settings", "mountPath": "/settings", "defaultMode": "0440"},
                    {"configMap": "settings", "mountPath": "/no-map", "exclude": True},
                ]
            }
        },
        "cat /settings/mode; echo; stat -L -c %a /settings/mode; [ -e /no-map ] || echo none",
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
                    {"secret": "token", "mountPath": "/no-secret", "exclude": True},
                ]
            }
        },
        "cat /token/value; echo; stat -L -c %a /token/value; [ -e /no-secret ] || echo none",
        "of-secret 400 none",
    ),
    "empty folder": Case(
        "storage.emptyDirVolume[].path storage.emptyDirVolume[].medium storage.emptyDirVolume[].sizeLimit "
        "storage.emptyDirVolume[].exclude",
        {
            "storage": {
                "emptyDirVolume": [
                    {"path": "/scratch", "medium": "Memory", "sizeLimit": "1Mi"},
                    {"path": "/plain"},
                    {"path": "/no-folder", "exclude": True},
                ]
            }
        },
        "stat -f -c %T /scratch; dd if=/dev/zero of=/scratch/x bs=1M count=2 2>/dev/null || echo full; "
        "touch /plain/x && ls /plain; [ -e /no-folder ] || echo none",
        "tmpfs full x none",
    ),
    "new claim": Case(
        "storage.pvc[].path storage.pvc[].claimInfo.size storage.pvc[].exclude",
        {
            "storage": {
                "pvc": [
                    {"path": "/claim", "name": "fresh", "claimInfo": {"size": "20Mi"}},
                    {"path": "/no-claim", "claimInfo": {"size": "1Mi"}, "exclude": True},
                ]
            }
        },
        "touch /claim/x$RUNAI_JOB_NAME && ls /claim | grep -c $RUNAI_JOB_NAME; [ -e /no-claim ] || echo none",
        "1 none",
    ),
    "claim of the server": Case(
        "storage.pvc[].existingPvc storage.pvc[].claimName storage.pvc[].readOnly",
        {"storage": {"pvc": [{"path": "/old", "existingPvc": True, "claimName": "shelf", "readOnly": True}]}},
        "cat /old/word; touch /old/y 2>/dev/null || echo kept",
        "written kept",
    ),
    "claim of the cluster": Case(
        "storage.pvc[].existingPvc storage.pvc[].claimName",
        {"storage": {"pvc": [{"path": "/foreign", "existingPvc": True, "claimName": "foreign"}]}},
        "cat /foreign/word",
        "written",
    ),
    "folder of the node": Case(
        "storage.hostPath[].path storage.hostPath[].mountPath storage.hostPath[].readOnly storage.hostPath[].exclude",
        {
            "storage": {
                "hostPath": [
                    {"path": "/usr/share", "mountPath": "/of-node"},
                    {"path": "/var/tmp", "mountPath": "/written", "readOnly": False},
                    {"path": "/usr", "mountPath": "/no-path", "exclude": True},
                ]
            }
        },
        "[ -d /of-node/doc ] && echo there; touch /of-node/x 2>/dev/null || echo kept; "
        "touch /written/fairlead-x && rm /written/fairlead-x && echo written; [ -e /no-path ] || echo none",
        "there kept written none",
    ),
}
CUSTOM = {
    "identity": Case(
        "security.uidGidSource security.runAsUid security.runAsGid security.supplementalGroups",
        {
            "security": {
                "uidGidSource": "custom",
                "runAsUid": 61_234,
                "runAsGid": 61_235,
                "supplementalGroups": "61236,61237",
            }
        },
        "id -u; id -G",
        "61234 61235 61236 61237",
    ),
    "not root": Case("security.runAsNonRoot", {"security": {"runAsNonRoot": True}}, "id -u", "61234"),
    "read-only root": Case(
        "security.readOnlyRootFilesystem",
        {"security": {"readOnlyRootFilesystem": True}},
        "touch /tmp/x 2>/dev/null || echo read-only",
        "read-only",
    ),
    "filter": Case(
        "security.seccompProfileType",
        {"security": {"seccompProfileType": "RuntimeDefault"}},
        MASK.format("Seccomp"),
        "2",
    ),
    "privileges": Case(
        "security.allowPrivilegeEscalation",
        {"security": {"allowPrivilegeEscalation": False}},
        MASK.format("NoNewPrivs"),
        "1",
    ),
    "capabilities": Case(
        "security.capabilities[] security.dropAllCapabilities",
        {"security": {"capabilities": ["SYS_NICE"], "dropAllCapabilities": True}},
        MASK.format("CapBnd"),
        f"{1 << 23:016x}",
    ),
}
BUNDLES: dict[str, dict[str, Case]] = {"plain": PLAIN, "custom": CUSTOM}
#: Cases whose fields leaders and workers do not have, and what is asked of them instead.
_NOT_IN_GROUPS = {"folder of the node", "privileges", "capabilities"}
#: What containers may hold without asking, and one more.
_MORE = Case(
    "security.capabilities[]", {"security": {"capabilities": ["SYS_NICE"]}}, MASK.format("CapBnd"), f"{0xA88425FB:016x}"
)


def bundle(name: str, *, is_group: bool = False) -> dict[str, Case]:
    if not is_group:
        return BUNDLES[name]
    kept = {title: case for title, case in BUNDLES[name].items() if title not in _NOT_IN_GROUPS}
    return kept | ({"a capability": _MORE} if name == "custom" else {})


def spec_of(cases: dict[str, Case], then: str = "") -> dict[str, Any]:
    """One pod for all of them; `then` is what it does at last."""
    spec: dict[str, Any] = {}
    for case in cases.values():
        _merge(spec, case.spec)
    script = "\n".join(f"echo; echo '::{title}'\n( {case.script} ) 2>&1" for title, case in cases.items())
    words = " ".join(shlex.quote(word) for word in (f"{script}\necho '::'\n{then}", "first", "second word"))
    return {"image": "python:3.11", **spec, "command": "sh -c", "args": words}


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        elif isinstance(value, list):
            into[name] = [*into.get(name, []), *value]
        else:
            into[name] = value


def read(output: str) -> dict[str, str]:
    """What each case said, on one line."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in output.splitlines():
        if line.startswith("::"):
            title = line[2:]
        else:
            found.setdefault(title, []).extend(line.split())
    return {title: " ".join(words) for title, words in found.items() if title}


def wanted(cases: dict[str, Case]) -> dict[str, str]:
    return {title: case.want for title, case in cases.items()}
