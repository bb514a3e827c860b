// Where a policy holds: the name of its scope, and the cluster that it is in.
interface Place {
  name: string;
  cluster: string;
}

/** A scope as policies and the sources of their rules name it. */
export interface ScopeRef {
  scope: string;
  projectId?: number | string;
  departmentId?: string;
  clusterId?: string;
  /** Whether it is Fairlead itself. */
  isFallback?: boolean;
}

/** By scope and id: a department and a project may have the same id. */
export type Places = ReadonlyMap<string, Place>;

interface Owner {
  id: string;
  name: string;
  clusterId: string;
}

export function placesOf(
  projects: readonly Owner[],
  departments: readonly Owner[],
  clusters: readonly { uuid: string; name: string }[],
): Places {
  return new Map([
    ...projects.map((one): [string, Place] => [`project ${one.id}`, { name: one.name, cluster: one.clusterId }]),
    ...departments.map((one): [string, Place] => [`department ${one.id}`, { name: one.name, cluster: one.clusterId }]),
    ...clusters.map((one): [string, Place] => [`cluster ${one.uuid}`, { name: one.name, cluster: one.uuid }]),
  ]);
}

/** Undefined for the whole installation, and for what the user may not see. */
export function placeOf(ref: ScopeRef, places: Places): Place | undefined {
  const id = idOf(ref);
  return id === undefined ? undefined : places.get(`${ref.scope} ${id}`);
}

export function describeScope(ref: ScopeRef, places: Places): string {
  if (ref.isFallback) return "built in";
  if (ref.scope === "tenant") return "the whole installation";
  return `${ref.scope} ${placeOf(ref, places)?.name ?? idOf(ref) ?? ""}`.trim();
}

function idOf(ref: ScopeRef): number | string | undefined {
  return ref.projectId ?? ref.departmentId ?? ref.clusterId;
}

const NEAREST_FIRST = ["project", "department", "cluster", "tenant"];

/** Those of the scopes that a project is in, the nearest first: it is the one whose defaults hold. */
export function aroundProject<T extends ScopeRef>(
  refs: readonly T[],
  project: { id: string; parentId: string; clusterId: string },
): T[] {
  const ids: Record<string, string> = { project: project.id, department: project.parentId, cluster: project.clusterId };
  return refs
    .filter((ref) => ref.scope === "tenant" || String(idOf(ref)) === ids[ref.scope])
    .sort((a, b) => NEAREST_FIRST.indexOf(a.scope) - NEAREST_FIRST.indexOf(b.scope));
}
