"""The parts a cluster can be started with, each standing on the ones before it."""

#: api: etcd and kube-apiserver. scheduling: with controllers, KAI, LeaderWorkerSet and nodes that run nothing.
#: containers: with one real node (containerd, kubelet, kube-proxy, CoreDNS).
PARTS = ("api", "scheduling", "containers")


def up_to(last: str) -> tuple[str, ...]:
    return PARTS[: PARTS.index(last) + 1]
