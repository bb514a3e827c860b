// The rules and defaults of a policy as rows: one for each field, with the scope that it comes from.
export interface RuleRow {
  field: string;
  /** Such as "max 4". */
  rule: string;
  /** Empty for defaults. */
  scope: string;
}

interface Source {
  scope: string;
  projectId?: number | string;
  departmentId?: string;
  isFallback?: boolean;
}

type Tree = Record<string, unknown>;

const SOURCE = "sourceOfRule";

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Every rule with its field. A member with a source has rules; a member without one has fields. */
export function listRules(rules: unknown, path = ""): RuleRow[] {
  if (!isTree(rules)) return [];
  if (SOURCE in rules) return rulesOfField(rules, path, describeSource(rules[SOURCE] as Source));
  return Object.entries(rules).flatMap(([name, value]) => listRules(value, path ? `${path}.${name}` : name));
}

function rulesOfField(field: Tree, path: string, scope: string): RuleRow[] {
  return Object.entries(field).flatMap(([name, value]): RuleRow[] => {
    if (name === SOURCE) return [];
    if (name === "instances" || name === "attributes") return nestedRules(value, `${path}.${name}`, scope);
    return [{ field: path, rule: describeRule(name, value), scope }];
  });
}

/** Rules for items of a list and for their members, which have the source of the list. */
function nestedRules(value: unknown, path: string, scope: string): RuleRow[] {
  if (!isTree(value)) return [];
  if (SOURCE in value) return rulesOfField(value, path, describeSource(value[SOURCE] as Source));
  return Object.entries(value).flatMap(([name, inner]): RuleRow[] =>
    isTree(inner) && name !== "defaultFrom"
      ? rulesOfField(inner, `${path}.${name}`, scope)
      : [{ field: path, rule: describeRule(name, inner), scope }],
  );
}

export function listDefaults(defaults: unknown, path = ""): { field: string; value: string }[] {
  if (!isTree(defaults)) return path ? [{ field: path, value: textOfValue(defaults) }] : [];
  return Object.entries(defaults).flatMap(([name, value]) => listDefaults(value, path ? `${path}.${name}` : name));
}

export function describeSource(source: Source): string {
  if (source.isFallback) return "built in";
  if (source.scope === "tenant") return "the whole installation";
  const id = source.projectId ?? source.departmentId;
  return id === undefined ? source.scope : `${source.scope} ${id}`;
}

function describeRule(name: string, value: unknown): string {
  return value === true ? name : `${name} ${textOfValue(value)}`;
}

function textOfValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
