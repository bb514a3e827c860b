// The policy of one scope, as the server keeps it: read, written and deleted.
import { get, put, remove, type Schemas } from "../../api/client";
import type { Kind } from "../../api/kinds";

type Entry = Schemas["PolicyEntry"];
type Scope = Schemas["PolicyMetaView"];

/** Every kind has the same paths. */
const pathOf = (rest: string) => `/api/v2/policy/${rest}` as "/api/v2/policy/trainings";

/** Whether a policy is for that kind, which policies call `distributedinference`. */
export function isFor(entry: Entry, kind: Kind): boolean {
  return kind.title.replaceAll(" ", "").toLowerCase() === entry.type.toLowerCase();
}

function whereOf({ scope, projectId, departmentId, clusterId }: Scope) {
  return { scope, projectId, departmentId, clusterId };
}

export function loadPolicy(rest: string, scope: Scope, signal?: AbortSignal) {
  return get(pathOf(rest), { query: whereOf(scope), ...(signal && { signal }) });
}

/** What a request writes to have this policy. */
export function toBody({ meta, policy }: Schemas["PolicyView"]): object {
  return { meta: { name: meta.name, ...whereOf(meta) }, policy };
}

export function putPolicy(rest: string, body: unknown, validateOnly = false): Promise<unknown> {
  return put(pathOf(rest), { query: { validateOnly }, body });
}

export function deletePolicy(rest: string, scope: Scope): Promise<unknown> {
  return remove(pathOf(rest), { query: whereOf(scope) });
}
