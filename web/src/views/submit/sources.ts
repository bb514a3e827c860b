// What a form needs from the server: projects, templates, policies, and names of things that fields refer to.
import { get, post, type Schemas, send } from "../../api/client";
import { loadForm, type KindForm } from "../../api/forms";
import { findKind } from "../../api/kinds";
import type { JsonObject } from "../../parts/form/values";
import type { Policy } from "./policy";
import { specOf } from "./submission";

export interface Sources {
  projects: Schemas["ProjectView"][];
  /** By `department 3`. */
  scopes: Map<string, string>;
}

const LIMIT = { limit: 500 };

export async function loadSources(signal: AbortSignal): Promise<Sources> {
  const projects = (await get("/api/v1/org-unit/projects", { query: LIMIT, signal })).projects;
  // Not everybody may see departments; then a rule shows the id.
  const departments = await get("/api/v1/org-unit/departments", { query: LIMIT, signal }).then(
    (answer) => answer.departments,
    () => [],
  );
  const scopes = new Map([
    ...projects.map((one): [string, string] => [`project ${one.id}`, one.name]),
    ...departments.map((one): [string, string] => [`department ${one.id}`, one.name]),
  ]);
  return { projects, scopes };
}

export async function loadPolicy(rest: string, projectId: string, signal: AbortSignal): Promise<Policy | undefined> {
  if (!projectId) return undefined;
  const path = `/api/v2/policy/${rest}/effective` as "/api/v2/policy/trainings/effective";
  const { effective } = await get(path, { query: { projectId }, signal });
  return { rules: effective.rules, defaults: effective.defaults };
}

export async function loadTemplates(title: string, projectId: string, signal: AbortSignal) {
  if (!projectId) return [];
  const query = { ...LIMIT, complyToProject: projectId };
  const { entries } = await get("/api/v1/workload-templates", { query, signal });
  return entries.filter((template) => template.meta.workloadType === title);
}

/** A dropped file, or what somebody has pasted, as requests. */
export async function readWorkloads(text: string, kind: string): Promise<Schemas["ConvertedWorkload"][]> {
  return (await post("/api/v1/conversions", { body: { text, kind } })).workloads;
}

export interface Original {
  form: KindForm;
  name: string;
  projectId: string;
  spec: JsonObject;
}

/** The workload that a copy starts from. */
export async function loadOriginal(id: string, signal: AbortSignal): Promise<Original> {
  const view = await get("/api/v1/workloads/{workloadId}", { path: { workloadId: id }, signal });
  const kind = findKind(view.type);
  if (!kind) throw new Error(`Workloads of the type ${view.type} cannot be submitted here`);
  const form = await loadForm(kind.rest);
  const response = await send("GET", `/api/v1/workloads/${kind.rest}/{workloadId}`, { path: { workloadId: id }, signal });
  const request = (await response.json()) as JsonObject;
  return { form, name: view.name, projectId: view.projectId, spec: specOf(form, request) };
}

/** Names that fields can refer to, by the word for the kind of object; what somebody may not see is left out. */
export async function loadNames(projectId: string, signal: AbortSignal): Promise<Map<string, string[]>> {
  const lists = {
    secret: "/api/v1/secrets",
    "config map": "/api/v1/config-maps",
    claim: "/api/v1/persistent-volume-claims",
    "storage class": "/api/v1/storage-classes",
  } as const;
  const names = new Map<string, string[]>();
  for (const [kind, path] of Object.entries(lists)) {
    const answer: unknown = await get(path, { query: { projectId: projectId || undefined }, signal }).catch(() => []);
    names.set(kind, namesIn(answer));
  }
  return names;
}

/** The names of the objects in an answer, wherever its list is. */
function namesIn(answer: unknown): string[] {
  const list = Array.isArray(answer) ? answer : Object.values(answer ?? {}).find(Array.isArray);
  return (list ?? []).flatMap((one: { name?: unknown }) => (typeof one.name === "string" ? [one.name] : []));
}
