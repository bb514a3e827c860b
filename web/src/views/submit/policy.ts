// What the policies of a project say about the fields of a form, in words.
import type { KindForm } from "../../api/forms";
import type { FieldRule } from "../../parts/form/form";
import { isObject, type Json, type JsonObject, type Path, valueAt } from "../../parts/form/values";

export interface Policy {
  rules: JsonObject;
  defaults: JsonObject;
}

/** Names of scopes by `department 3`; what is missing is shown by its id. */
export type ScopeNames = ReadonlyMap<string, string>;

/** The part of a policy's tree that a path of the spec is in, and the path inside it. */
function placeOf(sections: KindForm["policySections"], path: Path): Path {
  const own = sections.find((section) => section.member !== "" && section.member === path[0]);
  const section = own ?? sections.find((one) => one.member === "");
  const inside = own ? path.slice(1) : path;
  return section?.name ? [section.name, ...inside] : inside;
}

/** Items of a list have rules for the list, and for the members of each item. */
function inTree(tree: JsonObject, path: Path): Json | undefined {
  const at = path.findIndex((step) => typeof step === "number");
  if (at < 0) return valueAt(tree, path);
  const rest = path.slice(at + 1).filter((step) => typeof step !== "number");
  return valueAt(tree, [...path.slice(0, at), "attributes", ...rest]);
}

export function findRule(
  policy: Policy | undefined,
  sections: KindForm["policySections"],
  path: Path,
  names: ScopeNames,
): FieldRule | undefined {
  if (!policy) return undefined;
  const place = placeOf(sections, path);
  const found = inTree(policy.rules, place);
  const preset = inTree(policy.defaults, place);
  const value = preset === undefined || isObject(preset) ? undefined : preset;
  if (!isObject(found)) {
    if (value === undefined) return undefined;
    return { note: `The policy's default is ${text(value)}.`, isLocked: false, default: value };
  }
  const instances = found["instances"];
  const rule = isObject(instances) ? instances : found;
  return readRule(rule, value, originOf(rule["sourceOfRule"], names));
}

function readRule(rule: JsonObject, preset: Json | undefined, origin: string): FieldRule | undefined {
  const { min, max, options } = rule;
  const isLocked = rule["canEdit"] === false || rule["blocked"] === true || rule["canAdd"] === false;
  const notes = notesOf(rule, preset);
  if (notes.length === 0 && preset === undefined) return undefined;
  const result: FieldRule = { note: `${notes.join("; ") || "Has a default"}${origin}.`, isLocked };
  if (typeof min === "number") result.min = min;
  if (typeof max === "number") result.max = max;
  if (Array.isArray(options)) result.options = options.map(optionText);
  if (preset !== undefined) result.default = preset;
  return result;
}

function notesOf(rule: JsonObject, preset: Json | undefined): string[] {
  const notes: string[] = [];
  const add = (is: boolean, note: string): void => {
    if (is) notes.push(note);
  };
  add(rule["blocked"] === true, "Must not be set");
  add(rule["canEdit"] === false, preset === undefined ? "Cannot be changed" : `Always ${text(preset)}`);
  add(rule["canAdd"] === false, "No items can be added");
  add(Array.isArray(rule["locked"]), `Cannot be changed: ${listed(rule["locked"])}`);
  add(rule["required"] === true, "Must be set");
  add(rule["min"] !== undefined, `At least ${text(rule["min"])}`);
  add(rule["max"] !== undefined, `At most ${text(rule["max"])}`);
  add(rule["step"] !== undefined, `In steps of ${text(rule["step"])}`);
  add(Array.isArray(rule["options"]), "Only these values are allowed");
  return notes;
}

function optionText(option: Json): string {
  return isObject(option) ? text(option["value"]) : text(option);
}

function listed(value: Json | undefined): string {
  return Array.isArray(value) ? value.map(text).join(", ") : "";
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? "");
}

/** ` (policy of department research)`; nothing for a rule that does not say where it comes from. */
function originOf(source: Json | undefined, names: ScopeNames): string {
  if (!isObject(source)) return "";
  const scope = text(source["scope"]);
  if (scope === "system") return " (built in)";
  if (scope === "tenant") return " (policy of the installation)";
  const id = source[`${scope}Id`];
  if (id === undefined || id === null) return ` (policy of the ${scope})`;
  return ` (policy of ${scope} ${names.get(`${scope} ${text(id)}`) ?? text(id)})`;
}
