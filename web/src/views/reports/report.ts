// The periods and groups of a usage report, its rows in a useful order, and the report as CSV.
import type { Schemas } from "../../api/client";

export type UsageRow = Schemas["UsageRow"];

export const PERIODS: readonly { name: string; title: string; days: number }[] = [
  { name: "day", title: "Last day", days: 1 },
  { name: "week", title: "Last 7 days", days: 7 },
  { name: "month", title: "Last 30 days", days: 30 },
  { name: "quarter", title: "Last 90 days", days: 90 },
];

export const GROUPS = ["project", "user", "department", "workload", "day"] as const;
export type Group = (typeof GROUPS)[number];

export function daysOf(name: string | null): number {
  return PERIODS.find((period) => period.name === name)?.days ?? 7;
}

export function groupOf(name: string | null): Group {
  return GROUPS.find((group) => group === name) ?? "project";
}

/** Days in their order; everything else by what it used, most first. */
export function sortRows(rows: readonly UsageRow[], group: Group): UsageRow[] {
  if (group === "day") return [...rows].sort((a, b) => nameOf(a, group).localeCompare(nameOf(b, group)));
  return [...rows].sort((a, b) => gpuHours(b.used) - gpuHours(a.used) || b.waitedHours - a.waitedHours);
}

export function nameOf(row: UsageRow, group: Group): string {
  return row[group] ?? "–";
}

export function gpuHours(hours: Schemas["Hours"] | null | undefined): number {
  return hours?.gpuHours ?? 0;
}

const CSV_COLUMNS: [string, (row: UsageRow) => number][] = [
  ["gpuHoursUsed", (row) => gpuHours(row.used)],
  ["gpuHoursWithinQuota", (row) => gpuHours(row.withinQuota)],
  ["gpuHoursBorrowed", (row) => gpuHours(row.borrowed)],
  ["gpuHoursLent", (row) => gpuHours(row.lent)],
  ["cpuHoursUsed", (row) => row.used.cpuHours ?? 0],
  ["memoryGibHoursUsed", (row) => row.used.memoryGibHours ?? 0],
  ["hoursWaited", (row) => row.waitedHours],
];

export function asCsv(rows: readonly UsageRow[], group: Group): string {
  const head = [group, ...CSV_COLUMNS.map(([title]) => title)];
  const lines = rows.map((row) => [quoted(nameOf(row, group)), ...CSV_COLUMNS.map(([, read]) => read(row))]);
  return [head, ...lines].map((line) => line.join(",")).join("\r\n") + "\r\n";
}

/** Names that a spreadsheet would take for a formula begin with an apostrophe. */
function quoted(name: string): string {
  const safe = /^[=+\-@\t\r]/.test(name) ? `'${name}` : name;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export interface PoolHours {
  used: number;
  capacity: number;
  unavailable: number;
}

export interface PoolReport extends PoolHours {
  name: string;
  days: (PoolHours & { day: string })[];
}

/** The GPU-hours of each node pool that has GPUs, as a whole and day by day. */
export function poolsOf(rows: readonly Schemas["PoolRow"][]): PoolReport[] {
  const pools = new Map<string, PoolReport>();
  for (const row of rows) {
    const [used, capacity, unavailable] = [gpuHours(row.used), gpuHours(row.capacity), gpuHours(row.unavailable)];
    if (capacity <= 0) continue;
    const pool = pools.get(row.nodePool) ?? { name: row.nodePool, used: 0, capacity: 0, unavailable: 0, days: [] };
    pool.used += used;
    pool.capacity += capacity;
    pool.unavailable += unavailable;
    pool.days.push({ day: row.day ?? "", used, capacity, unavailable });
    pools.set(row.nodePool, pool);
  }
  for (const pool of pools.values()) pool.days.sort((a, b) => a.day.localeCompare(b.day));
  return [...pools.values()];
}
