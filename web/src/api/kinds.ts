// The kinds of workloads, from the server's own table: nothing here names one.
import table from "../generated/kinds.json";
import type { PathOf } from "./client";

/** The only kind with revisions is the one that has this path. */
const REVISIONS: PathOf<"get"> = "/api/v1/workloads/inferences/{workloadId}/revisions";

export interface Kind {
  title: string;
  /** The name in REST paths. */
  rest: string;
  /** Its name in a sentence. */
  noun: string;
  /** Members of its spec that can be changed while it runs. */
  canChange: readonly string[];
  canSuspend: boolean;
  /** Whether a change rolls out as a revision. */
  hasRevisions: boolean;
}

export const kinds: readonly Kind[] = table.map((kind) => ({
  ...kind,
  hasRevisions: `/api/v1/workloads/${kind.rest}/{workloadId}/revisions` === REVISIONS,
}));
const byTitle = new Map(kinds.map((kind) => [kind.title, kind]));

export function findKind(title: string): Kind | undefined {
  return byTitle.get(title);
}

export type Verb = "suspend" | "resume" | "delete";

/** Method and path of a verb on a workload; undefined if its kind has no such verb. */
export function actionOf(title: string, verb: Verb): { method: string; path: PathOf<"post"> } | undefined {
  const kind = findKind(title);
  if (!kind || (verb !== "delete" && !kind.canSuspend)) return undefined;
  const path = `/api/v1/workloads/${kind.rest}/{workloadId}${verb === "delete" ? "" : `/${verb}`}`;
  return { method: verb === "delete" ? "DELETE" : "POST", path: path as PathOf<"post"> };
}
