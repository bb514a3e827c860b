// What a form says, as the request that the server takes.
import type { KindForm } from "../../api/forms";
import type { Schemas } from "../../api/client";
import { isObject, type Json, type JsonObject, withValue } from "../../parts/form/values";

export interface Draft {
  name: string;
  projectId: string;
  templateId: string;
  spec: JsonObject;
}

/** The draft with a project: its own if there is one of that id, otherwise the first that is shown. */
export function withProject(draft: Draft, projects: readonly { id: string }[], first?: { id: string }): Draft {
  if (!first || projects.some((one) => one.id === draft.projectId)) return draft;
  return { ...draft, projectId: first.id };
}

export type SetDraft = (next: Draft | ((last: Draft) => Draft)) => void;

/** The creation request; members that a request has beside its spec are moved there. */
export function requestOf(form: KindForm, draft: Draft, clusterId: string): JsonObject {
  const spec = { ...draft.spec };
  const beside: JsonObject = {};
  for (const name of form.outsideSpec) {
    const value = spec[name];
    if (value === undefined) continue;
    beside[name] = value;
    delete spec[name]; // eslint-disable-line @typescript-eslint/no-dynamic-delete -- a copy
  }
  const ids = { projectId: draft.projectId, clusterId };
  const template: JsonObject = draft.templateId ? { templateId: draft.templateId } : {};
  return { name: draft.name, ...ids, ...template, spec, ...beside };
}

/** The spec of a form from a creation request or a workload as the server shows it. */
export function specOf(form: KindForm, request: JsonObject): JsonObject {
  const given = request["spec"];
  const spec: JsonObject = isObject(given) ? { ...given } : {};
  for (const name of form.outsideSpec) {
    const value = request[name];
    if (value !== undefined && value !== null) spec[name] = value;
  }
  return withoutNulls(spec);
}

function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) => {
      if (value === null) return [];
      return [[name, isObject(value) ? withoutNulls(value) : value]];
    }),
  );
}

/** The server's words by the path of the field in the form; those without a field of their own come back apart. */
export function problemsOf(issues: Schemas["ComplianceIssue"][]): Map<string, string[]> {
  const problems = new Map<string, string[]>();
  for (const issue of issues) {
    const path = issue.field.replace(/^spec\./, "");
    problems.set(path, [...(problems.get(path) ?? []), issue.details]);
  }
  return problems;
}

/** A name that is free for a copy: `train` becomes `train-2`, and `train-2` becomes `train-3`. */
export function copiedName(name: string): string {
  const found = /^(.*)-(\d{1,6})$/.exec(name);
  const [stem, number] = found ? [found[1] ?? name, Number(found[2]) + 1] : [name, 2];
  return `${stem.slice(0, 60)}-${number}`;
}

/** A spec with the values of an address on it: `compute.gpuDevicesRequest=1`. What is not a value is left out. */
export function withSettings(spec: JsonObject, settings: readonly string[]): JsonObject {
  return settings.reduce((changed, setting) => {
    const [path = "", text = ""] = setting.split(/=(.*)/s);
    try {
      return withValue(changed, path.split("."), JSON.parse(text) as Json);
    } catch {
      return changed;
    }
  }, spec);
}
