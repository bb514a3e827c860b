// The kinds of assets as the server declares them, and what a form about one of them sends.
import type { Field } from "../../parts/form/fields";
import { isObject, type Json, type JsonObject } from "../../parts/form/values";
import type { ScopeChoice } from "../../parts/scopes";

export interface AssetKind {
  /** Below `/api/v1/asset/`. */
  path: string;
  kind: string;
  title: string;
  /** Its member in lists of several kinds. */
  member: string;
  /** What roles call it. */
  resource: string;
  fields: Field[];
}

export async function loadAssetKinds(): Promise<AssetKind[]> {
  return (await import("../../generated/assets.json")).default as AssetKind[];
}

/** The kinds of a group of the library, such as `datasource`. */
export function kindsOfGroup(kinds: readonly AssetKind[], group: string): AssetKind[] {
  return kinds.filter((one) => one.path === group || one.path.startsWith(`${group}/`));
}

/** The spec of an asset of a list, without nulls. Secrets are not in it. */
export function specOfAsset(kind: AssetKind, asset: { spec: object }): JsonObject {
  const spec = asset.spec as JsonObject;
  const inside = kind.member ? spec[kind.member] : undefined;
  return withoutNulls(isObject(inside) ? inside : spec);
}

function withoutNulls(value: JsonObject): JsonObject {
  const kept = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(kept.map(([name, member]): [string, Json] => [name, isObject(member) ? withoutNulls(member) : member]));
}

/** Where an asset can be used, as a request says it. */
export function scopeMembers(scope: ScopeChoice): JsonObject {
  const id = { cluster: { clusterId: scope.id }, department: { departmentId: scope.id }, project: { projectId: Number(scope.id) } };
  return { scope: scope.type, ...id[scope.type] };
}

/** Fields that name a credential offer those that exist. */
export function withCredentials(fields: readonly Field[], credentials: readonly { id: string; name: string }[]): Field[] {
  const choices = credentials.map((one) => one.id);
  const choiceTitles = Object.fromEntries(credentials.map((one) => [one.id, one.name]));
  return fields.map((field) => (field.refers === "credential" ? { ...field, choices, choiceTitles } : field));
}
