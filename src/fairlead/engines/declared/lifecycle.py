"""How often, how long and how a training ends: done by the loop, the same on every engine."""

from fairlead.engines.declared.effect import Effect, seen


def _seen(host: str, name: str, file: str = "e2e/test_lifecycle.py") -> Effect:
    return seen(host, f"{file}::test_{name}")


EFFECTS: dict[str, Effect] = {
    "completions": _seen("so many pods must end well", "a_sweep_runs_each_pod_on_its_own"),
    "parallelism": _seen("so many at once", "a_sweep_runs_each_pod_on_its_own"),
    "backoffLimit": _seen("so many failures are retried", "a_failed_pod_is_retried_until_the_limit"),
    "restartPolicy": _seen("a new pod, or the same again", "a_restart_makes_a_new_pod_or_restarts_in_place"),
    "terminationGracePeriodSeconds": _seen("the time between TERM and KILL", "the_grace_is_given_and_then_ended"),
    "terminateAfterPreemption": _seen(
        "an evicted workload ends", "a_preempted_workload_may_ask_to_end", "e2e/test_quota.py"
    ),
    "preemptionLimit": _seen(
        "one preemption more is its end", "what_follows_an_eviction", "unit/control/test_organization_evictions.py"
    ),
    "autoDeletionTimeAfterCompletionSeconds": _seen(
        "deleted so long after its end", "a_finished_workload_deletes_itself"
    ),
}
