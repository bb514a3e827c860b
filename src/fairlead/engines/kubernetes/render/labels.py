"""Labels, annotations and names that objects carry in the cluster. Pure.

They are KAI's, Run:ai's and, below `fairlead/`, our own. Objects of earlier versions carry them too: never rename one.
"""

SCHEDULER = "kai-scheduler"
QUEUE_LABEL = "kai.scheduler/queue"
POOL_LABEL = "kai.scheduler/node-pool"
#: Run:ai's names of the same labels, for people and their programs; KAI does not read them.
RUNAI_QUEUE_LABEL, RUNAI_POOL_LABEL = "runai/queue", "runai/node-pool"
POOLS_ANNOTATION = "kai.scheduler/node-pools"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
PRIORITY_LABEL = "priorityClassName"
NODE_TYPE_LABEL = "run.ai/type"
WORKLOAD_LABEL, PROJECT_LABEL = "workloadName", "project"
#: On all our objects: the installation that created them, the workload, its run, and the pod set.
CLUSTER_LABEL, ID_LABEL, RUN_LABEL, ROLE_LABEL = (
    "fairlead/cluster",
    "fairlead/workload-id",
    "fairlead/run",
    "fairlead/role",
)
EPHEMERAL_LABEL = "fairlead/ephemeral"
#: On claims that belong to the server: the id of their record.
CLAIM_LABEL = "fairlead/claim-id"
#: On controllers: the Pod Security level that their pods were rendered for.
LEVEL = "fairlead/pod-security"
#: On pods: the name of their pod group, for KAI.
GROUP_ANNOTATION = "pod-group-name"
#: KAI sets it on pods that have a part of a GPU: pods with the same value share that GPU.
GPU_GROUP_LABEL = "runai-gpu-group"
GPU = "nvidia.com/gpu"
#: The container that runs the workload, unless an operator wants another name.
MAIN = "main"
DEFAULT_POOL = "default"
#: On pod groups of our own, and on their pods: the index of a pod in its set, and the attempt that created it.
OWN_LABEL, INDEX_LABEL, ATTEMPT_LABEL = "fairlead/own-group", "fairlead/index", "fairlead/attempt"
#: On pod groups of our own and on jobs of operators: how many attempts have failed. On Jobs that were created again:
#: how many pods failed in the Jobs before them.
FAILURES = "fairlead/failures"
#: On Jobs that were created again: how many pods succeeded in the Jobs before them.
SUCCEEDED = "fairlead/succeeded"
#: On Jobs of an array: the positions of the tasks that are done, and how many tasks the Jobs after this one will run.
TASKS_DONE, TASKS_LEFT = "fairlead/array-done", "fairlead/array-left"
#: On pods of an Indexed Job, set by Kubernetes: which of the Job's completions they work on.
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
#: On a pod group of our own that has succeeded: its pods may be deleted, and are not created again.
COMPLETED = "fairlead/completed"
#: On a pod group that we moved: the number of the condition that was the reason, so that the next pool gets its try.
MOVED = "fairlead/moved-after"
#: On controllers: a digest of the objects with which they were applied.
DIGEST = "fairlead/applied"
#: The role to which the server's account is bound in the namespaces of projects, and the name of that binding.
PROJECT_ROLE, PROJECT_BINDING = "fairlead-project", "fairlead"
#: On controllers: what their pods carry for autoscalers of nodes, as the labels of nodes in their pools (KEY=VALUE).
NODE_SCALING = "fairlead/node-scaling"
#: On pods: the Cluster Autoscaler and Karpenter do not remove their nodes.
SAFE_TO_EVICT, DO_NOT_DISRUPT = "cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"
#: On queues: the records of their owner and of their node pool, from which a lost database can be rebuilt.
OWNER_RECORD, POOL_RECORD = "fairlead/owner-record", "fairlead/node-pool-record"
#: On nodes: the pool for which we labelled them.
POOL_NOTE = "fairlead/node-pool"

#: Names under which a user's labels and annotations would change what was decided about pods: KAI reads some of them
#: before anything else, we find and count our objects by others, and Kubernetes refuses Jobs that set its own.
_DECIDING = frozenset(
    {
        PRIORITY_LABEL,
        PREEMPTIBILITY_LABEL,
        QUEUE_LABEL,
        POOL_LABEL,
        RUNAI_QUEUE_LABEL,
        RUNAI_POOL_LABEL,
        POOLS_ANNOTATION,
        GROUP_ANNOTATION,
        GPU_GROUP_LABEL,
        "gpu-fraction",
        "gpu-memory",
        "gpu-fraction-num-devices",
        *("job-name", "batch.kubernetes.io/job-name", "controller-uid", "batch.kubernetes.io/controller-uid"),
        *(CLUSTER_LABEL, ID_LABEL, RUN_LABEL, ROLE_LABEL, EPHEMERAL_LABEL, CLAIM_LABEL, LEVEL, DIGEST, NODE_SCALING),
        *(OWN_LABEL, INDEX_LABEL, ATTEMPT_LABEL, FAILURES, SUCCEEDED, TASKS_DONE, TASKS_LEFT, COMPLETED, MOVED),
    }
)


def drop_deciding(given: dict[str, str]) -> dict[str, str]:
    """The labels or annotations of a user that may stand on an object."""
    return {name: value for name, value in given.items() if not is_deciding(name)}


def is_deciding(name: str) -> bool:
    """Whether a label or annotation of that name is ours alone to set."""
    return name in _DECIDING


def pool_labels(pool: str) -> dict[str, str]:
    """The default pool has no label."""
    return {} if pool == DEFAULT_POOL else {POOL_LABEL: pool, RUNAI_POOL_LABEL: pool}


def role_label(role: str) -> str:
    """A role as the value of a label, which allows fewer characters."""
    return role.replace("@", ".at.")


def labelled_pool(labels: dict[str, str]) -> str:
    """The node pool of an object with these labels."""
    return labels.get(POOL_LABEL, DEFAULT_POOL)


def role_of(labels: dict[str, str]) -> str:
    """The role that the label states."""
    return labels.get(ROLE_LABEL, "").replace(".at.", "@")
