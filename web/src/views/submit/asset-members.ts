// The content of assets as members of a spec: requests cannot name assets, so choosing one fills the form.
import { isObject, type Json, type JsonObject, type Path, valueAt, withValue } from "../../parts/form/values";

export interface HeldAsset {
  kind: string;
  name: string;
  spec: JsonObject;
  /** The claim of a data source that has one. */
  claimName?: string;
}

/** Names of secrets by the ids of the credentials that they belong to. */
export type Secrets = ReadonlyMap<string, string>;

/** From the kind of a data source to the list of volumes that it is added to. */
const VOLUMES: Record<string, string> = {
  git: "git",
  hostPath: "hostPath",
  nfs: "nfs",
  pvc: "pvc",
  s3: "s3",
  "config-map": "configMapVolume",
  "secret-volume": "secretVolume",
};
/** Members of an asset that name a credential, and the member of a workload that names its secret. */
const CREDENTIALS: Record<string, string> = {
  passwordAssetId: "passwordSecret",
  credentialId: "passwordSecret",
  accessKeyAssetId: "accessKeySecret",
  credentialAssetId: "secret",
};
/** Members of an environment that are at the top of a spec; the others belong to its security. */
const OF_PROCESS = new Set(["image", "imagePullPolicy", "command", "args", "workingDir", "createHomeDir", "probes", "tty", "stdin"]);
const OF_CLAIM = new Set(["path", "readOnly", "dataSharing"]);

/** The members that an asset sets. */
export function membersOf(asset: HeldAsset, secrets: Secrets): JsonObject {
  if (asset.kind === "compute") return { compute: asset.spec };
  const volumes = VOLUMES[asset.kind];
  if (volumes) return { storage: { [volumes]: [volumeOf(asset, secrets)] } };
  return environmentMembers(asset.spec, secrets);
}

function environmentMembers(spec: JsonObject, secrets: Secrets): JsonObject {
  const { environmentVariables, connections, ...others } = spec;
  delete others["overrideUidGidInWorkspace"];
  const security: JsonObject = {};
  const result: JsonObject = {};
  for (const [name, value] of Object.entries(others)) (OF_PROCESS.has(name) ? result : security)[name] = value;
  if (Object.keys(security).length > 0) result["security"] = security;
  const variables = objectsIn(environmentVariables).map((one) => variableOf(one, secrets));
  if (variables.length > 0) result["environmentVariables"] = variables;
  for (const connection of objectsIn(connections)) {
    const [list, item] = connectionOf(connection);
    if (list) result[list] = [...((result[list] as Json[] | undefined) ?? []), item];
  }
  return result;
}

function objectsIn(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function variableOf({ credential, ...variable }: JsonObject, secrets: Secrets): JsonObject {
  if (!isObject(credential)) return variable;
  return { ...variable, secret: { name: secretOf(credential["assetId"], secrets), key: credential["key"] ?? "" } };
}

function secretOf(credential: Json | undefined, secrets: Secrets): string {
  return (typeof credential === "string" && secrets.get(credential)) || "";
}

/** A tool in the container is a URL or a port, a tool elsewhere a link. */
function connectionOf({ name = "", externalToolInfo: outside, internalToolInfo: inside }: JsonObject): [string, JsonObject] {
  if (isObject(outside)) {
    return ["relatedUrls", { name, url: outside["externalUrl"] ?? "", type: outside["toolType"] ?? "" }];
  }
  if (!isObject(inside)) return ["", {}];
  const type = inside["connectionType"] ?? "";
  const shown = { name, container: inside["containerPort"] ?? 0, toolType: inside["toolType"] ?? "", toolName: name };
  const url = valueAt(inside, ["externalUrlInfo", "externalUrl"]);
  if (type === "ExternalUrl") return ["exposedUrls", { ...shown, ...(url ? { url } : {}) }];
  return type === "NodePort" || type === "LoadBalancer" ? ["ports", { ...shown, serviceType: type }] : ["", {}];
}

function volumeOf({ kind, name, spec, claimName }: HeldAsset, secrets: Secrets): JsonObject {
  const given = Object.entries(spec).map(([member, value]): [string, Json] => {
    const instead = CREDENTIALS[member];
    return instead ? [instead, secretOf(value, secrets)] : [member, value];
  });
  if (kind !== "pvc") return { name, ...Object.fromEntries(given) };
  const kept = given.filter(([member]) => OF_CLAIM.has(member));
  return { name, ...Object.fromEntries(kept), existingPvc: true, claimName: claimName ?? "" };
}

/** The spec with what an asset sets at a path: values are replaced, and so are items of lists with the same name. */
export function withAsset(spec: JsonObject, at: Path, asset: HeldAsset, secrets: Secrets): JsonObject {
  const before = valueAt(spec, at);
  return withValue(spec, at, laidOver(isObject(before) ? before : {}, membersOf(asset, secrets)));
}

function laidOver(below: JsonObject, above: JsonObject): JsonObject {
  const result = { ...below };
  for (const [name, value] of Object.entries(above)) {
    const old = result[name];
    if (isObject(old) && isObject(value)) result[name] = laidOver(old, value);
    else if (Array.isArray(old) && Array.isArray(value)) result[name] = [...old.filter((one) => !isNamedIn(one, value)), ...value];
    else result[name] = value;
  }
  return result;
}

function isNamedIn(item: Json, items: Json[]): boolean {
  return isObject(item) && items.some((one) => isObject(one) && one["name"] === item["name"]);
}
