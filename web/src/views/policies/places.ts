// Where a policy holds: the name of its scope, and the cluster that it is in.
import type { Schemas } from "../../api/client";

interface Place {
  name: string;
  cluster: string;
}

/** By scope and id: a department and a project may have the same id. */
export type Places = ReadonlyMap<string, Place>;

interface Owner {
  id: string;
  name: string;
  clusterId: string;
}

export function placesOf(
  projects: readonly Owner[],
  departments: readonly Owner[],
  clusters: readonly { uuid: string; name: string }[],
): Places {
  return new Map([
    ...projects.map((one): [string, Place] => [`project ${one.id}`, { name: one.name, cluster: one.clusterId }]),
    ...departments.map((one): [string, Place] => [`department ${one.id}`, { name: one.name, cluster: one.clusterId }]),
    ...clusters.map((one): [string, Place] => [`cluster ${one.uuid}`, { name: one.name, cluster: one.uuid }]),
  ]);
}

/** Undefined for the whole installation, and for what the user may not see. */
export function placeOf(meta: Schemas["PolicyMetaView"], places: Places): Place | undefined {
  const id = meta.projectId ?? meta.departmentId ?? meta.clusterId;
  return id === undefined ? undefined : places.get(`${meta.scope} ${id}`);
}

export function describeScope(meta: Schemas["PolicyMetaView"], places: Places): string {
  if (meta.scope === "tenant") return "the whole installation";
  const id = meta.projectId ?? meta.departmentId ?? meta.clusterId ?? "";
  return `${meta.scope} ${placeOf(meta, places)?.name ?? id}`.trim();
}
