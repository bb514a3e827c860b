"""The whole grammar of the runai CLI v2 for `submit`, kind by kind: its flags are known and do what they say."""

from typing import Any

import pytest

from fairlead.cli.flags import UsageError, parse
from fairlead.cli.workloads.kinds import commands
from fairlead.cli.workloads.submit_flags import fill_spec
from fairlead.client.kinds import KindEntry, load_kinds

STANDARD = """
    image image-pull-policy command working-dir environment-variable env-secret env-pod-field-ref env-my-credentials tty
    stdin attach environment gpu-devices-request gpu-request-type gpu-portion-request gpu-portion-limit
    gpu-memory-request gpu-memory-limit cpu-core-request cpu-core-limit cpu-memory-request cpu-memory-limit
    extended-resource large-shm compute existing-pvc new-pvc nfs host-path git-sync s3 configmap-map-volume
    secret-volume empty-dir-volume datasource datavolume node-pools node-type toleration preferred-pod-topology-key
    required-pod-topology-key exclude-node priority preemptibility port external-url backoff-limit
    auto-deletion-time-after-completion termination-grace-period restart-policy runs parallelism name-prefix
    wait-for-submit pod-running-timeout template run-as-uid run-as-gid run-as-user supplemental-groups
    user-group-source capability seccomp-profile host-ipc host-network allow-privilege-escalation run-as-non-root
    privileged create-home-dir label annotation
"""
SWEEP = "runs parallelism"
MASTER = """
    workers clean-pod-policy master-args master-command master-environment master-environment-variable
    master-extended-resource master-no-pvcs
"""
PYTORCH = (
    MASTER
    + """
    no-master min-replicas max-replicas master-gpu-devices-request master-gpu-portion-request
    master-gpu-portion-limit
"""
)
#: What an inference has not; the two last are no properties of it in the contract.
NOT_SERVING = """
    backoff-limit auto-deletion-time-after-completion host-path host-ipc host-network s3 tty stdin runs parallelism
    termination-grace-period restart-policy allow-privilege-escalation
"""
SERVING = """
    serving-port min-replicas max-replicas min-scale max-scale initial-replicas activation-replicas metric
    metric-threshold metric-threshold-percentage concurrency-hard-limit scale-to-zero-retention-seconds
    scale-down-delay-seconds initialization-timeout-seconds
"""
GROUPS = """
    image command replicas workers worker-as-leader worker-image worker-command worker-args worker-environment-variable
    worker-gpu-devices-request startup-policy restart-policy serving-port mnnvl
"""


def words(text: str, but: str = "") -> set[str]:
    return set(text.split()) - set(but.split())


GRAMMAR: dict[tuple[str, ...], set[str]] = {
    ("training",): words(STANDARD),
    ("workspace",): words(STANDARD, SWEEP) | {"preemptible"},
    ("training", "pytorch"): words(STANDARD, SWEEP) | words(PYTORCH),
    ("pytorch",): words(STANDARD, SWEEP) | words(PYTORCH),
    ("training", "tensorflow"): words(STANDARD, SWEEP) | words(PYTORCH),
    ("training", "xgboost"): words(STANDARD, SWEEP) | words(PYTORCH),
    ("training", "jax"): words(STANDARD, SWEEP) | words(PYTORCH),
    ("training", "mpi"): words(STANDARD, SWEEP) | words(MASTER) | {"slots-per-worker"},
    ("mpi",): words(STANDARD, SWEEP) | words(MASTER) | {"slots-per-worker"},
    ("inference",): words(STANDARD, NOT_SERVING) | words(SERVING),
    ("inference", "distributed"): words(GROUPS),
}
KINDS = {each.command: each for kind in load_kinds().values() for each in (kind, *kind.subtypes)}


def submit_of(kind: KindEntry) -> Any:
    return next(command for command in commands(kind) if command.verb == "submit")


@pytest.mark.parametrize("command", GRAMMAR, ids=" ".join)
def test_every_flag_of_the_grammar_is_known(command: tuple[str, ...]) -> None:
    flags = submit_of(KINDS[command]).flags
    known = {flag.name for flag in flags} | {alias for flag in flags for alias in flag.aliases}
    assert GRAMMAR[command] - known == set()


def spec_of(command: tuple[str, ...], *line: str) -> dict[str, Any]:
    """What a command line makes of an empty spec."""
    spec: dict[str, Any] = {}
    fill_spec(spec, KINDS[command], parse(list(line), submit_of(KINDS[command]).flags))
    return spec


def test_preemptible_is_the_older_word() -> None:
    assert spec_of(("workspace",), "--preemptible")["preemptibility"] == "preemptible"


def test_variables_of_the_master_by_their_older_name() -> None:
    spec = spec_of(("training", "pytorch"), "-i", "x", "--master-environment", "A=b")
    assert spec["masterSpec"]["environmentVariables"] == [{"name": "A", "value": "b"}]


def test_a_master_without_claims_has_all_the_rest() -> None:
    line = ("-i", "x", "--existing-pvc", "claimname=data,path=/data", "--git-sync", "repository=r,path=/code")
    spec = spec_of(("training", "pytorch"), *line, "--master-no-pvcs")
    assert [item["claimName"] for item in spec["storage"]["pvc"]] == ["data"]
    assert spec["masterSpec"]["image"] == "x"
    assert set(spec["masterSpec"]["storage"]) == {"git"}
    only = spec_of(
        ("training", "pytorch"), "-i", "x", "--existing-pvc", "claimname=data,path=/data", "--master-no-pvcs"
    )
    assert "storage" not in only["masterSpec"]
    assert "masterSpec" not in spec_of(("training", "pytorch"), *line)


@pytest.mark.parametrize("flag", ["--privileged", "--mnnvl=Required"])
def test_what_no_request_can_say_is_refused_with_what_to_do(flag: str) -> None:
    with pytest.raises(UsageError, match=r"is not supported: .*; \w+ .*--[a-z]"):
        spec_of(("inference", "distributed"), flag)
    assert spec_of(("inference", "distributed"), "--mnnvl", "None") == spec_of(("inference", "distributed"))
