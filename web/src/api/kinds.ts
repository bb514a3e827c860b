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
  /** Whether workload YAML has it. */
  hasYaml: boolean;
  /** Whether a change rolls out as a revision. */
  hasRevisions: boolean;
  /** What its pods belong to. */
  arrangement: "groups" | "revisions" | "none";
}

export const kinds: readonly Kind[] = table.map((kind): Kind => {
  const hasRevisions = `/api/v1/workloads/${kind.rest}/{workloadId}/revisions` === REVISIONS;
  // Replicas that are pods belong to revisions; other replicas are groups of pods.
  const hasGroups = kind.canChange.includes("replicas");
  return { ...kind, hasRevisions, arrangement: hasRevisions ? "revisions" : hasGroups ? "groups" : "none" };
});
const byTitle = new Map(kinds.map((kind) => [kind.title, kind]));

export function findKind(title: string): Kind | undefined {
  return byTitle.get(title);
}

/** A kind as people call it, at the beginning of a sentence: `Distributed training`. */
export function titleOf(kind: string): string {
  const noun = findKind(kind)?.noun ?? kind;
  return noun.charAt(0).toUpperCase() + noun.slice(1);
}

export type Verb = "suspend" | "resume" | "delete";

/** Method and path of a verb on a workload; undefined if its kind has no such verb. */
export function actionOf(title: string, verb: Verb): { method: string; path: PathOf<"post"> } | undefined {
  const kind = findKind(title);
  if (!kind || (verb !== "delete" && !kind.canSuspend)) return undefined;
  const path = `/api/v1/workloads/${kind.rest}/{workloadId}${verb === "delete" ? "" : `/${verb}`}`;
  return { method: verb === "delete" ? "DELETE" : "POST", path: path as PathOf<"post"> };
}
