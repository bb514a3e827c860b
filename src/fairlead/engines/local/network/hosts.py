"""The files by which a pod's names resolve: `/etc/hosts` with its group's names, `/etc/resolv.conf` if needed. Pure.

`plan.py` writes them; pods see them read-only at the usual places.
"""

from collections.abc import Iterable, Sequence


def render_hosts(members: Iterable[tuple[str, Sequence[str]]], machine: str) -> str:
    """The file's text, from (address, names) of the pods of one workload and the text of this machine's own file."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    lines += [f"{address} {' '.join(names)}" for address, names in members]
    # Entries for other machines are kept. Those for this machine would lead to the pod itself.
    lines += [line for line in machine.splitlines() if not _is_local(line)]
    return "\n".join(lines) + "\n"


def _is_local(line: str) -> bool:
    entry = line.partition("#")[0].split()
    return not entry or entry[0].startswith("127.") or ":" in entry[0]


def names_of(pod_name: str, workload: str, namespace: str) -> list[str]:
    """What a pod is called: by itself, below its workload's service, and in full as on a cluster."""
    return [
        pod_name,
        f"{pod_name}.{workload}",
        f"{pod_name}.{workload}.{namespace}",
        f"{pod_name}.{workload}.{namespace}.svc.cluster.local",
    ]


def has_local_resolver(resolv: str) -> bool:
    """Whether names are looked up at an address of this machine's loopback, which no other network reaches."""
    lines = [line.split() for line in resolv.splitlines()]
    return any(len(line) > 1 and line[0] == "nameserver" and line[1].startswith(("127.", "::1")) for line in lines)
