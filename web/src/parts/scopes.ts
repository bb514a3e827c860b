// The parts of the organization in which something can hold, and a choice among them.
import { get } from "../api/client";

export interface ScopeChoice {
  id: string;
  type: "cluster" | "department" | "project";
  title: string;
  /** The id of the cluster that it is in. */
  cluster: string;
}

interface Organization {
  clusters: readonly { uuid: string; name: string }[];
  departments: readonly Owner[];
  projects: readonly Owner[];
}

interface Owner {
  id: string;
  name: string;
  clusterId: string;
}

/** Every scope, widest first. */
export function listScopes({ clusters, departments, projects }: Organization): ScopeChoice[] {
  const owner = (type: "department" | "project", title: string) => (one: Owner): ScopeChoice => ({
    id: one.id,
    type,
    title: `${title} ${one.name}`,
    cluster: one.clusterId,
  });
  return [
    ...clusters.map(({ uuid, name }): ScopeChoice => ({
      id: uuid,
      type: "cluster",
      title: `Everything in ${name}`,
      cluster: uuid,
    })),
    ...departments.map(owner("department", "Department")),
    ...projects.map(owner("project", "Project")),
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
