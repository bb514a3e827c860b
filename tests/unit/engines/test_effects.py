"""Which fields the local engine refuses and which it only advises."""

from fairlead.engines.local.effects import advisory, unsupported
from fairlead.model.podset import Container, EnvironmentVariable

DEFAULTS = {
    "compute": {},
    "storage": {},
    "probes": {},
    "security": {
        "uidGidSource": "fromTheImage",
        "runAsNonRoot": False,
        "readOnlyRootFilesystem": False,
        "hostIpc": False,
        "hostNetwork": False,
    },
}


def test_a_plain_training_has_nothing_to_refuse() -> None:
    assert unsupported(Container(image="x", fields=DEFAULTS)) == ()


def test_secrets_where_pods_could_read_each_others() -> None:
    variables = (
        EnvironmentVariable(name="TOKEN", secret=("s", "k")),
        EnvironmentVariable(name="MINE", user_credential=("c", "k")),
        EnvironmentVariable(name="PLAIN", config_map=("m", "k")),
    )
    container = Container(image="x", environment=variables)
    notes = dict(unsupported(container, may_use_secrets=False))
    assert set(notes) == {"environmentVariables[TOKEN].secret", "environmentVariables[MINE].userCredential"}
    assert "'s'" in notes["environmentVariables[TOKEN].secret"]
    assert unsupported(container) == ()


def test_advice() -> None:
    fields = {"compute": {"gpuPortionRequest": 0.5}, "imagePullPolicy": "Always"}
    notes = dict(advisory(Container(image="x", fields=fields)))
    assert set(notes) == {"image", "imagePullPolicy", "compute.gpuPortionRequest"}


def test_a_memory_limit_is_enforced_and_so_no_advice() -> None:
    container = Container(image="", memory_limit_bytes=1)
    assert (unsupported(container), advisory(container)) == ((), ())
