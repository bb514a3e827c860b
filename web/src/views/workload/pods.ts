// What the name of a pod says: its role, and the group that it belongs to. Names are `NAME-ROLE-INDEX`; those of groups
// are `NAME-GROUP` for the leader and `NAME-GROUP-INDEX` for a worker.
import type { Schemas } from "../../api/client";

type Pod = Schemas["PodView"];

/** The part of a pod's name that is its own. */
function suffixOf(pod: string, workload: string): string {
  return pod.startsWith(`${workload}-`) ? pod.slice(workload.length + 1) : pod;
}

const GROUP = /^(\d+)(?:-(\d+))?$/;
const ROLE = /^(.*)-(\d+)$/;

export function roleOf(pod: string, workload: string): string {
  const suffix = suffixOf(pod, workload);
  const group = GROUP.exec(suffix);
  if (group) return group[2] ? `worker ${group[2]}` : `pod ${suffix}`;
  const role = ROLE.exec(suffix);
  return role ? `${role[1] ?? ""} ${role[2] ?? ""}` : suffix;
}

/** The pods of each group, the leader first; one group without a title if the workload has none. */
export function groupsOf(pods: readonly Pod[], workload: string): [string, Pod[]][] {
  const isGrouped = pods.some((pod) => GROUP.exec(suffixOf(pod.name, workload))?.[2]);
  if (!isGrouped) return [["", [...pods]]];
  return boxes(pods, (pod) => `Group ${GROUP.exec(suffixOf(pod.name, workload))?.[1] ?? "?"}`);
}

export function nodesOf(pods: readonly Pod[]): [string, Pod[]][] {
  return boxes(pods, (pod) => pod.nodeName ?? "");
}

function boxes(pods: readonly Pod[], titleOf: (pod: Pod) => string): [string, Pod[]][] {
  const found = new Map<string, Pod[]>();
  for (const pod of [...pods].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))) {
    const title = titleOf(pod);
    found.set(title, [...(found.get(title) ?? []), pod]);
  }
  return [...found].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }));
}
