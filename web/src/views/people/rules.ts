// Access rules by their subject, and in words.
import type { Schemas } from "../../api/client";

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

/** Who has rules, but none of those that are shown. */
export function subjectsWithoutRules(
  rules: readonly Schemas["RuleView"][],
  shown: ReadonlyMap<string, unknown>,
): Set<string> {
  return new Set([...rulesBySubject(rules).keys()].filter((subject) => !shown.has(subject)));
}
