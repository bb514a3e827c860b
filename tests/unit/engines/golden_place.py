"""Where the workloads of golden files are rendered to."""

from fairlead.engines.kubernetes.render.context import RenderContext

GOLDEN_PLACE = RenderContext(
    name="golden",
    namespace="runai-team-a",
    project="team-a",
    queue="team-a",
    priority_class="low",
    is_preemptible=True,
    ownership_labels={"fairlead/cluster": "c", "fairlead/workload-id": "w", "fairlead/run": "1"},
    identity={"RUNAI_JOB_NAME": "golden"},
)
