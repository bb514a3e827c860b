// Values of a form by their path. A form's content is what a request has: plain JSON without empty members.
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [name: string]: Json;
}
export type Path = readonly (string | number)[];

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function valueAt(root: Json | undefined, path: Path): Json | undefined {
  let value = root;
  for (const step of path) {
    if (Array.isArray(value) && typeof step === "number") value = value[step];
    else if (isObject(value)) value = value[step];
    else return undefined;
  }
  return value;
}

/** The same content with another value at a path. Without a value the member is gone, and every object that is then empty. */
export function withValue(root: JsonObject, path: Path, value: Json | undefined): JsonObject {
  const changed = changedAt(root, path, value);
  return isObject(changed) ? changed : {};
}

function changedAt(node: Json | undefined, path: Path, value: Json | undefined): Json | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof step === "number") {
    const items = Array.isArray(node) ? [...node] : [];
    const item = changedAt(items[step], rest, value);
    // Items keep their place while they are filled in; removing one has no path below it.
    if (item === undefined && rest.length === 0) items.splice(step, 1);
    else items[step] = item ?? {};
    return items.length > 0 ? items : undefined;
  }
  const members = { ...(isObject(node) ? node : {}) };
  const member = changedAt(members[step], rest, value);
  if (member === undefined) delete members[step]; // eslint-disable-line @typescript-eslint/no-dynamic-delete -- a copy
  else members[step] = member;
  return Object.keys(members).length > 0 ? members : undefined;
}

/** A path as the server writes it: `environmentVariables[0].name`. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text ? `${text}.${step}` : step;
  }, "");
}

/** What is set in `above` on top of `below`; lists are taken whole. */
export function merged(below: JsonObject, above: JsonObject): JsonObject {
  const result = { ...below };
  for (const [name, value] of Object.entries(above)) {
    const old = result[name];
    result[name] = isObject(old) && isObject(value) ? merged(old, value) : value;
  }
  return result;
}

/** How many values are set below a value. */
export function countValues(value: Json | undefined): number {
  if (value === undefined || value === null) return 0;
  if (Array.isArray(value)) return value.length;
  if (isObject(value)) return Object.values(value).reduce<number>((sum, one) => sum + countValues(one), 0);
  return 1;
}
