// What the overview says about the workloads: counts by project, what needs attention, what changed lately.
import { isRunning, isWaiting, type Row } from "../../store/rows";

const HOUR = 3_600_000;
const HALF_HOUR = HOUR / 2;
const DAY = 24 * HOUR;
/** The message of a workload that waits in vain. */
const IN_VAIN = /^Can never start/;
/** How long a workload may be in a phase before it is worth a look; phases that should pass quickly are stuck then. */
const LONGEST: Partial<Record<Row["phase"], number>> = {
  Pending: 6 * HOUR,
  Creating: HALF_HOUR,
  Resuming: HALF_HOUR,
  Initializing: HALF_HOUR,
  Stopping: HALF_HOUR,
  Terminating: HALF_HOUR,
  Deleting: HALF_HOUR,
};

export interface ProjectCount {
  project: string;
  running: number;
  waiting: number;
  gpus: number;
  /** When the one that waits longest began to wait; Infinity if none does. */
  waitsSince: number;
}

export function countByProject(rows: readonly Row[]): ProjectCount[] {
  const counts = new Map<string, ProjectCount>();
  for (const row of rows) {
    if (!isRunning(row) && !isWaiting(row)) continue;
    const entry = counts.get(row.project) ?? { project: row.project, running: 0, waiting: 0, gpus: 0, waitsSince: Infinity };
    entry.running += isRunning(row) ? 1 : 0;
    entry.waiting += isWaiting(row) ? 1 : 0;
    entry.gpus += row.gpusHeld;
    if (isWaiting(row)) entry.waitsSince = Math.min(entry.waitsSince, row.phaseSince);
    counts.set(row.project, entry);
  }
  return [...counts.values()].sort((a, b) => b.gpus - a.gpus || a.project.localeCompare(b.project));
}

/** How much of the GPUs of each pool is held in parts, by workloads that share them. */
export function sharedByPool(rows: readonly Row[]): Map<string, number> {
  const shared = new Map<string, number>();
  for (const row of rows) {
    if (row.gpusHeld % 1 !== 0) shared.set(row.pool, (shared.get(row.pool) ?? 0) + row.gpusHeld);
  }
  return shared;
}

/** Failed within a day, degraded, evicted, can never start, or is in a phase for too long. */
export function needsAttention(row: Row, now: number): boolean {
  if (row.phase === "Failed") return now - row.phaseSince < DAY;
  if (row.phase === "Degraded" || row.phase === "Unknown") return true;
  if (row.isEvicted || (isWaiting(row) && IN_VAIN.test(row.message))) return true;
  return now - row.phaseSince > (LONGEST[row.phase] ?? Infinity);
}

/** The newest first. */
export function needAttention(rows: readonly Row[], now: number): Row[] {
  return rows.filter((row) => needsAttention(row, now)).sort((a, b) => b.phaseSince - a.phaseSince);
}

export function changedLately(rows: readonly Row[], now: number): Row[] {
  return rows.filter((row) => now - row.phaseSince < HOUR).sort((a, b) => b.phaseSince - a.phaseSince);
}
