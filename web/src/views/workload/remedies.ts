// What the page can do about a change that would start a workload: suspend others, change a share, or fill the form.
import type { Schemas } from "../../api/client";
import priorities from "../../generated/priorities.json";
import type { Json } from "../../parts/form/values";

type Verified = Schemas["VerifiedChange"];
type Change = NonNullable<Verified["changes"]>[number];
type OfKind<K extends Change["change"]> = Extract<Change, { change: K }>;

/** A value at a path of a workload's spec. */
export interface Setting {
  path: string;
  value: Json;
}

export type Remedy =
  /** Workloads to suspend, as `project/name`. */
  | { kind: "suspend"; workloads: string[] }
  | { kind: "share"; changes: OfKind<"share">[] }
  | { kind: "spec"; settings: Setting[] };

/** Undefined if only somebody outside the page can do it: add a node, or wait. */
export function remedyOf(change: Verified): Remedy | undefined {
  const changes = change.changes ?? [];
  if (change.by === "time" || changes.length === 0 || (change.ends?.hidden ?? 0) > 0) return undefined;
  if (changes.every((one) => one.change === "removeWorkload")) {
    return { kind: "suspend", workloads: changes.map((one) => one.workload) };
  }
  if (changes.every((one) => one.change === "share")) {
    return changes.every((one) => (one.resource ?? "gpu") === "gpu") ? { kind: "share", changes } : undefined;
  }
  const settings = changes.flatMap((one) => settingsOf(one) ?? []);
  return settings.length === changes.length ? { kind: "spec", settings } : undefined;
}

const GIB = 1 << 30;
const priorityName = (value: number): string | undefined =>
  Object.entries(priorities).find(([, number]) => number === value)?.[0];

function settingsOf(change: Change): Setting[] | undefined {
  switch (change.change) {
    case "request":
      return [requestOf(change)];
    case "nodePools":
      return [{ path: "nodePools", value: [...change.nodePools] }];
    case "priority":
      return namedPriority(change.value);
    case "preemptible":
      return [{ path: "preemptibility", value: change.value ? "preemptible" : "non-preemptible" }];
    default:
      return undefined;
  }
}

function namedPriority(value: number): Setting[] | undefined {
  const name = priorityName(value);
  return name === undefined ? undefined : [{ path: "priorityClass", value: name }];
}

function requestOf({ amount, value }: OfKind<"request">): Setting {
  switch (amount) {
    case "gpu":
      return { path: "compute.gpuDevicesRequest", value };
    case "gpuPortion":
      return { path: "compute.gpuPortionRequest", value };
    case "gpuMemoryMib":
      return { path: "compute.gpuMemoryRequest", value: `${value}Mi` };
    case "cpuMilli":
      return { path: "compute.cpuCoreRequest", value: value / 1000 };
    case "memoryBytes":
      return { path: "compute.cpuMemoryRequest", value: value % GIB === 0 ? `${value / GIB}Gi` : `${value / 1024 ** 2}Mi` };
  }
}

/** Settings as parts of an address: `set=compute.gpuDevicesRequest=1`; the form reads them with `readSettings`. */
export function settingsText(settings: readonly Setting[]): string {
  return settings.map((one) => `set=${encodeURIComponent(`${one.path}=${JSON.stringify(one.value)}`)}`).join("&");
}
