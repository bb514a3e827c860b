from typing import Any

import pytest

from fairlead.admission.admit import admit, requested_dependencies
from fairlead.admission.policies.merge import Policy
from fairlead.kinds import KINDS
from fairlead.model.after import Dependency
from fairlead.model.dialect import Dialect
from fairlead.model.errors import AGAINST_POLICY, Invalid
from fairlead.model.spec.fields import build
from fairlead.model.submission import Submission

KIND = KINDS["training"]


def submission(name: str = "t", dialect: Dialect = Dialect.REST, **spec: Any) -> Submission:
    return Submission(
        kind=KIND.key,
        name=name,
        project_id="1",
        cluster_id="c",
        spec=build(KIND.spec, {"image": "x", **spec}),
        dialect=dialect,
    )


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, ("low", 40, True, "Train", ()), id="defaults of the kind"),
        pytest.param({"priorityClass": "high"}, ("high", 125, False, "Train", ()), id="high is not preemptible"),
        pytest.param({"priorityClass": "medium-high"}, ("medium-high", 90, True, "Train", ()), id="90 still is"),
        pytest.param({"priorityClass": "high", "preemptibility": "preemptible"},
                     ("high", 125, True, "Train", ()), id="an explicit word wins"),
        pytest.param({"category": "Build", "nodePools": ["a", "b"]},
                     ("low", 40, True, "Build", ("a", "b")), id="given"),
    ],
)  # fmt: skip
def test_what_follows_from_the_spec(spec: dict[str, Any], want: tuple[Any, ...]) -> None:
    got = admit(KIND, submission(**spec))
    assert (got.priority_class, got.priority, got.preemptible, got.category, got.node_pools) == want


def test_everything_is_refused_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        admit(KIND, submission("T", image=None, tty=True, completions=3), max_completions=2)
    assert caught.value.message == "The request has 4 errors: name, spec.image, spec.tty and 1 more"
    assert [issue.field for issue in caught.value.issues] == ["name", "spec.image", "spec.tty", "spec.completions"]


def test_contradictions_of_the_older_dialect_are_forgiven() -> None:
    spec: dict[str, Any] = {"environmentVariables": [{"name": "A", "value": "1", "secret": {"name": "s", "key": "k"}}]}
    admit(KIND, submission(dialect=Dialect.OLDER_REST, **spec))
    with pytest.raises(Invalid):
        admit(KIND, submission(**spec))


def test_policy_violations_have_their_own_message() -> None:
    policy = Policy(rules={"compute": {"gpuDevicesRequest": {"min": 3}}})
    with pytest.raises(Invalid) as caught:
        admit(KIND, submission(compute={"gpuDevicesRequest": 1}), policy=policy)
    assert caught.value.message == AGAINST_POLICY
    [issue] = caught.value.issues
    assert (issue.field, issue.details, issue.rule) == (
        "compute.gpuDevicesRequest",
        "value must be no less than 3",
        "min",
    )


def test_a_policy_default_gives_the_image() -> None:
    with pytest.raises(Invalid):
        admit(KIND, submission(image=None))
    assert admit(KIND, submission(image=None), policy=Policy(defaults={"image": "x"})).category == "Train"


def test_violations_stand_where_the_caller_put_the_items() -> None:
    policy = Policy(defaults={"environmentVariables": [{"name": "TEAM", "value": "x"}]})
    wrong = [{"name": "A", "podFieldRef": {"path": "spec.no"}}, {"name": "B", "value": "1"}, {"name": "C"}]
    with pytest.raises(Invalid) as caught:
        admit(KIND, submission(environmentVariables=wrong), policy=policy)
    assert [issue.field for issue in caught.value.issues] == [
        "spec.environmentVariables[0].podFieldRef.path",
        "spec.environmentVariables[2]",
    ]


def test_the_workloads_that_must_have_ended() -> None:
    def named(value: str) -> Submission:
        return submission(annotations=[{"name": "fairlead/after", "value": value}])

    assert requested_dependencies(KIND, submission().spec) == ()
    assert requested_dependencies(KIND, named("any:prep").spec) == (Dependency("prep", True),)
    with pytest.raises(Invalid) as caught:
        requested_dependencies(KIND, named("Prep").spec)
    assert caught.value.issues[0].details.startswith("fairlead/after: 'Prep' must be the name of a workload")


def test_the_time_limit_that_a_workload_asks_for() -> None:
    def asking(value: str) -> Submission:
        return submission(annotations=[{"name": "fairlead/time-limit", "value": value}])

    assert admit(KIND, asking("90")).time_limit == 90_000
    assert admit(KIND, submission()).time_limit is None
    for value in ("", "0", "-5", "1h", "9" * 20):
        with pytest.raises(Invalid) as caught:
            admit(KIND, asking(value))
        assert "must be a number of seconds" in caught.value.issues[0].details
