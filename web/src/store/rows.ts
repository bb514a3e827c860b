// A workload as the lists show it: only what is shown, so that ten thousand of them stay small.
import type { Schemas } from "../api/client";

export interface Row {
  id: string;
  name: string;
  kind: string;
  phase: Schemas["Phase"];
  project: string;
  /** The id of its cluster. */
  cluster: string;
  owner: string;
  gpusAsked: number;
  gpusHeld: number;
  /** The node pool that its pods run in; empty without pods. */
  pool: string;
  /** Milliseconds since 1970. */
  created: number;
  phaseSince: number;
  /** How long it had waited at `asOf`. */
  waitedSeconds: number;
  asOf: number;
  message: string;
  /** Whether it waits because it was evicted. */
  isEvicted: boolean;
  /** What a search looks into. It is put together here, outside the page's own thread. */
  text: string;
}

export function toRow(view: Schemas["WorkloadView"]): Row {
  const words = [view.name, view.type, view.phase, view.projectName, view.submittedBy, view.phaseMessage ?? ""];
  return {
    id: view.id,
    name: view.name,
    kind: view.type,
    phase: view.phase,
    project: view.projectName,
    cluster: view.clusterId,
    owner: view.submittedBy,
    gpusAsked: view.workloadRequestedResources?.gpu.request ?? 0,
    gpusHeld: view.allocatedResources?.gpu ?? 0,
    pool: view.currentNodePools?.[0] ?? "",
    created: Date.parse(view.createdAt),
    phaseSince: Date.parse(view.phaseUpdatedAt),
    waitedSeconds: view.totalPendingTimeSeconds ?? 0,
    asOf: Date.now(),
    message: view.phaseMessage ?? "",
    isEvicted: view.evictedAt !== undefined,
    text: words.join(" ").toLowerCase(),
  };
}

export const WAITING = ["Creating", "Pending", "Resuming"] as const;
export const RUNNING = ["Running", "Degraded", "Updating", "Initializing"] as const;
const waiting = new Set<string>(WAITING);
const running = new Set<string>(RUNNING);
const ended = new Set<string>(["Completed", "Failed", "Stopped"]);

export const isWaiting = (row: Row): boolean => waiting.has(row.phase);
export const isRunning = (row: Row): boolean => running.has(row.phase);
export const hasEnded = (row: Row): boolean => ended.has(row.phase);
