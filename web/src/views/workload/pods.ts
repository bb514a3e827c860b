// What the name of a pod says: its role, and what it belongs to. Names are `NAME-ROLE-INDEX`, or only numbers after the
// name: `NAME-GROUP` for the leader of a group and `NAME-GROUP-INDEX` for its workers, `NAME-REVISION-INDEX` for the
// replicas of a service, `NAME-INDEX-ATTEMPT` for the pods of a job.
import type { Schemas } from "../../api/client";

type Pod = Schemas["PodView"];
/** What the pods of a workload belong to. */
export type Arrangement = "groups" | "revisions" | "none";

/** The part of a pod's name that is its own. */
function suffixOf(pod: string, workload: string): string {
  return pod.startsWith(`${workload}-`) ? pod.slice(workload.length + 1) : pod;
}

const NUMBERS = /^(\d+)(?:-(\d+))?$/;
const ROLE = /^(.*)-(\d+)$/;

export function roleOf(pod: string, workload: string, arrangement: Arrangement = "none"): string {
  const suffix = suffixOf(pod, workload);
  const numbers = NUMBERS.exec(suffix);
  const [, first = "", second] = numbers ?? [];
  if (numbers && arrangement === "revisions") return `replica ${second ?? first}`;
  if (numbers && arrangement === "groups") return second ? `worker ${second}` : "leader";
  if (numbers) return `pod ${first}`;
  const role = ROLE.exec(suffix);
  return role ? `${role[1] ?? ""} ${role[2] ?? ""}` : suffix;
}

const TITLES = { groups: "Group", revisions: "Revision" };

/** The pods of each group or revision, the leader first; none if the workload has no such. */
export function groupsOf(pods: readonly Pod[], workload: string, arrangement: Arrangement): [string, Pod[]][] {
  if (arrangement === "none") return [];
  return boxes(pods, (pod) => `${TITLES[arrangement]} ${NUMBERS.exec(suffixOf(pod.name, workload))?.[1] ?? "?"}`);
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

/** Its GPUs by their numbers, without a number if the cluster does not say it, and which part of each it has. */
export function devicesOf(pod: Pick<Pod, "gpuDevices" | "allocatedResources">): { devices: string[]; portion: number } {
  const gpus = pod.allocatedResources?.gpu ?? 0;
  const known = (pod.gpuDevices ?? []).map(String);
  const devices = known.length > 0 ? known : Array.from({ length: Math.ceil(gpus) }, () => "");
  return { devices, portion: devices.length > 0 ? Math.min(1, gpus / devices.length) : 0 };
}

/** Numbers in few words: `0–3, 6`. */
export function rangesOf(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
}
