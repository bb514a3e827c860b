// The parts of the organization in which something can hold, and a choice among them.
import { get } from "../api/client";

export interface ScopeChoice {
  id: string;
  type: "cluster" | "department" | "project";
  title: string;
}

interface Organization {
  clusters: readonly { uuid: string; name: string }[];
  departments: readonly { id: string; name: string }[];
  projects: readonly { id: string; name: string }[];
}

/** Every scope, widest first. */
export function listScopes({ clusters, departments, projects }: Organization): ScopeChoice[] {
  return [
    ...clusters.map(({ uuid, name }): ScopeChoice => ({ id: uuid, type: "cluster", title: `Everything in ${name}` })),
    ...departments.map(({ id, name }): ScopeChoice => ({ id, type: "department", title: `Department ${name}` })),
    ...projects.map(({ id, name }): ScopeChoice => ({ id, type: "project", title: `Project ${name}` })),
  ];
}

/** A department and a project may have the same id. */
export const keyOfScope = (scope: ScopeChoice): string => `${scope.type}/${scope.id}`;

/** Not everybody may see departments. */
export async function loadScopes(signal: AbortSignal): Promise<ScopeChoice[]> {
  const query = { limit: 500 };
  const [clusters, departments, projects] = await Promise.all([
    get("/api/v1/clusters", { signal }),
    get("/api/v1/org-unit/departments", { query, signal }).then((answer) => answer.departments, () => []),
    get("/api/v1/org-unit/projects", { query, signal }).then((answer) => answer.projects),
  ]);
  return listScopes({ clusters, departments, projects });
}
