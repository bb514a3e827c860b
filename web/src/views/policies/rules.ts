// The rules and defaults of a policy as rows: one for each field, with the scope that it comes from.
import type { ScopeRef } from "./places";

export interface RuleRow {
  field: string;
  /** Such as "max 4". */
  rule: string;
  source: ScopeRef;
}

export interface DefaultRow {
  field: string;
  value: string;
}

type Tree = Record<string, unknown>;

const SOURCE = "sourceOfRule";

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Every rule with its field. A member with a source has rules; a member without one has fields. */
export function listRules(rules: unknown, path = ""): RuleRow[] {
  if (!isTree(rules)) return [];
  if (SOURCE in rules) return rulesOfField(rules, path, rules[SOURCE] as ScopeRef);
  return Object.entries(rules).flatMap(([name, value]) => listRules(value, path ? `${path}.${name}` : name));
}

function rulesOfField(field: Tree, path: string, source: ScopeRef): RuleRow[] {
  return Object.entries(field).flatMap(([name, value]): RuleRow[] => {
    if (name === SOURCE) return [];
    if (name === "instances" || name === "attributes") return nestedRules(value, `${path}.${name}`, source);
    return [{ field: path, rule: describeRule(name, value), source }];
  });
}

/** Rules for items of a list and for their members, which have the source of the list. */
function nestedRules(value: unknown, path: string, source: ScopeRef): RuleRow[] {
  if (!isTree(value)) return [];
  if (SOURCE in value) return rulesOfField(value, path, value[SOURCE] as ScopeRef);
  return Object.entries(value).flatMap(([name, inner]): RuleRow[] =>
    isTree(inner) && name !== "defaultFrom"
      ? rulesOfField(inner, `${path}.${name}`, source)
      : [{ field: path, rule: describeRule(name, inner), source }],
  );
}

export function listDefaults(defaults: unknown, path = ""): DefaultRow[] {
  if (!isTree(defaults)) return path ? [{ field: path, value: textOfValue(defaults) }] : [];
  return Object.entries(defaults).flatMap(([name, value]) => listDefaults(value, path ? `${path}.${name}` : name));
}

/** Which of some policies, the nearest first, a default comes from; lists are put together from all that have some. */
export function sourcesOfDefault<T>(row: DefaultRow, policies: readonly { defaults: unknown; scope: T }[]): T[] {
  const having = policies.filter(({ defaults }) => listDefaults(defaults).some((one) => one.field === row.field));
  return having.slice(0, row.field.endsWith(".instances") ? undefined : 1).map(({ scope }) => scope);
}

/** Ids of the assets that a policy imposes: of a kind with roles they are listed by role. */
export function imposedIds(imposed: unknown): string[] {
  const lists = Array.isArray(imposed) ? [imposed as unknown[]] : isTree(imposed) ? Object.values(imposed) : [];
  return [...new Set(lists.flatMap((list) => (Array.isArray(list) ? list.map(String) : [])))];
}

function describeRule(name: string, value: unknown): string {
  return value === true ? name : `${name} ${textOfValue(value)}`;
}

function textOfValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
