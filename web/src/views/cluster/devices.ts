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
