"""Which fields the local engine refuses and which it only advises."""

import pytest

from fairlead.engines.local.plan.identity import ServerRights
from fairlead.engines.local.plan.review import find_refused_on_host, find_weaker_on_host, name_isolation, review
from fairlead.model.allowed import Allowed
from fairlead.model.pods.podset import EnvironmentVariable, PodContainer
from tests.builders import container_fields
from tests.unit.engines.local.plan.test_identity import ADA, PERSONAL, ROOT, SHARED, SHARED_ROOT, rights

DEFAULTS = container_fields(
    {
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
)


def test_a_plain_training_has_nothing_to_refuse() -> None:
    assert find_refused_on_host(PodContainer(image="x", fields=DEFAULTS)) == ()


def test_secrets_where_pods_could_read_each_others() -> None:
    variables = (
        EnvironmentVariable(name="TOKEN", secret=("s", "k")),
        EnvironmentVariable(name="MINE", user_credential=("c", "k")),
        EnvironmentVariable(name="PLAIN", config_map=("m", "k")),
    )
    container = PodContainer(image="x", environment=variables)
    notes = dict(find_refused_on_host(container, may_use_secrets=False))
    assert set(notes) == {"environmentVariables[TOKEN].secret", "environmentVariables[MINE].userCredential"}
    assert "'s'" in notes["environmentVariables[TOKEN].secret"]
    assert find_refused_on_host(container) == ()


def test_advice() -> None:
    fields = {"compute": {"gpuPortionRequest": 0.5}, "imagePullPolicy": "Always"}
    notes = dict(find_weaker_on_host(PodContainer(image="x", fields=container_fields(fields))))
    assert set(notes) == {"image", "imagePullPolicy", "compute.gpuPortionRequest"}


def test_a_memory_limit_is_enforced_and_so_no_advice() -> None:
    container = PodContainer(image="", memory_limit_bytes=1)
    assert (find_refused_on_host(container), find_weaker_on_host(container)) == ((), ())


@pytest.mark.parametrize(
    ("runtime", "given", "want", "words"),
    [
        pytest.param("host", SHARED_ROOT, "Namespaces", "mount and process", id="shared, as root"),
        pytest.param("host", SHARED, "UserNamespaces", "user, mount and process", id="shared, without root"),
        pytest.param("host", PERSONAL, "None", "personal", id="personal"),
        pytest.param(
            "host",
            rights(ADA, allowed=Allowed(no_isolation=True)),
            "None",
            "--allow no-isolation",
            id="by the operator's flag",
        ),
        pytest.param("podman", SHARED_ROOT, "Container", "podman; root in it has no rights", id="mapped"),
        pytest.param("docker", rights(ROOT, personal=True), "Container", "a container of docker", id="an engine's"),
    ],
)
def test_the_isolation_is_named(runtime: str, given: ServerRights, want: str, words: str) -> None:
    name, why = name_isolation(runtime, given)
    assert name == want
    assert words in why


def test_a_review_names_the_isolation() -> None:
    found = review(PodContainer(image="x", fields=DEFAULTS), SHARED, lambda container: ([], []))
    assert found.isolation is not None
    assert found.isolation[0] == "UserNamespaces"
