// What a workload's log comes from, to tell when a log that has ended is worth reading again.
import type { Schemas } from "../../api/client";

export type Pod = Schemas["PodView"];

export interface LogSources {
  /** The pods and how often each was started: another run has another log. */
  runs: string;
  /** The pods and their phases: what could not be read in one phase may be readable in the next. */
  phases: string;
}

export function sourcesOf(pods: readonly Pick<Pod, "name" | "k8sPhase" | "restarts">[]): LogSources {
  return {
    runs: pods.map((pod) => `${pod.name} ${pod.restarts ?? 0}`).join(),
    phases: pods.map((pod) => `${pod.name} ${pod.k8sPhase}`).join(),
  };
}

/** Whether a log that has ended or failed has more to tell than when it was read. Without pods there is nothing new. */
export function isWorthReading(read: LogSources, now: LogSources, hasFailed: boolean): boolean {
  if (!now.runs) return false;
  return hasFailed ? read.phases !== now.phases : read.runs !== now.runs;
}
