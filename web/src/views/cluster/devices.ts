// Which workload holds which GPU of which node, read from the scheduler's snapshot.
export interface SnapshotTask {
  status?: string;
  node?: string | null;
  devices?: number[];
  gpu?: number;
  gpuPortion?: number;
}

export interface Snapshot {
  nodes?: { name: string; gpu?: number; ready?: boolean; nodePool?: string; labels?: Record<string, string> }[];
  queues?: { name: string; displayName?: string }[];
  jobs?: { name?: string; queue: string; tasks: SnapshotTask[] }[];
}

export interface Holder {
  workload: string;
  project: string;
  /** 1 is the whole device. */
  portion: number;
}

export interface NodePicture {
  name: string;
  pool: string;
  isReady: boolean;
  /** How many pods are on it. */
  pods: number;
  labels: Record<string, string>;
  /** The holders of each device, by its number. */
  devices: Holder[][];
}

const HOLDING = new Set(["Allocated", "Binding", "Bound", "Running", "Releasing", "StuckInReleasing"]);

export function drawNodes(snapshot: Snapshot): NodePicture[] {
  const projects = new Map((snapshot.queues ?? []).map((queue) => [queue.name, queue.displayName ?? queue.name]));
  const nodes = new Map(
    (snapshot.nodes ?? []).map((node) => [
      node.name,
      {
        name: node.name,
        pool: node.nodePool ?? "default",
        isReady: node.ready ?? true,
        pods: 0,
        labels: node.labels ?? {},
        devices: Array.from({ length: node.gpu ?? 0 }, (): Holder[] => []),
      },
    ]),
  );
  for (const job of snapshot.jobs ?? []) {
    for (const task of job.tasks) {
      const node = HOLDING.has(task.status ?? "Pending") ? nodes.get(task.node ?? "") : undefined;
      if (node) node.pods += 1;
      const portion = task.gpuPortion ? task.gpuPortion : 1;
      const holder = { workload: job.name ?? "", project: projects.get(job.queue) ?? job.queue, portion };
      for (const device of task.devices ?? []) node?.devices[device]?.push(holder);
    }
  }
  return [...nodes.values()].sort((a, b) => a.pool.localeCompare(b.pool) || a.name.localeCompare(b.name));
}

const HUES = 8;

/** A number from 1 for the colour of each project that holds something: neighbours in the alphabet differ. */
export function huesOf(nodes: readonly NodePicture[]): Map<string, number> {
  const projects = new Set(nodes.flatMap((node) => node.devices.flat().map((holder) => holder.project)));
  return new Map([...projects].sort().map((project, at) => [project, (at % HUES) + 1]));
}

/** How many devices nobody uses, and how much is left of those that are shared. */
export function freeOf(devices: readonly Holder[][]): { whole: number; left: number } {
  const used = devices.map((holders) => holders.reduce((sum, holder) => sum + holder.portion, 0));
  return {
    whole: used.filter((one) => one === 0).length,
    left: used.filter((one) => one > 0).reduce((sum, one) => sum + Math.max(0, 1 - one), 0),
  };
}
