// Scopes that an access rule can have, and a rule in words.
import type { Schemas } from "../../api/client";

export interface ScopeChoice {
  id: string;
  type: Schemas["RuleCreation"]["scopeType"];
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

export function describeScope(rule: Schemas["RuleView"]): string {
  if (rule.scopeType === "tenant" || rule.scopeType === "system") return "the whole installation";
  return `${rule.scopeType} ${rule.scopeName}`;
}

/** The rules of each user; rules of groups and service accounts are under their own names. */
export function rulesBySubject(rules: readonly Schemas["RuleView"][]): Map<string, Schemas["RuleView"][]> {
  const bySubject = new Map<string, Schemas["RuleView"][]>();
  for (const rule of rules) {
    const key = `${rule.subjectType} ${rule.subjectId}`;
    bySubject.set(key, [...(bySubject.get(key) ?? []), rule]);
  }
  return bySubject;
}
