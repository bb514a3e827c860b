// The clusters of the server, and the one that the page is narrowed to. Its name is in the address of every view.
import { computed, signal } from "@preact/signals";
import { get, type Schemas } from "../api/client";
import { query } from "../router";

type Cluster = Schemas["ClusterView"];

export const clusters = signal<readonly Cluster[]>([]);

/** The cluster that is looked at; undefined for all of them. */
export const chosenCluster = computed(() => clusters.value.find((one) => one.name === query.value.get("cluster")));

export async function loadClusters(): Promise<void> {
  clusters.value = await get("/api/v1/clusters");
}

/** Whether something of this cluster is shown. What belongs to no cluster always is. */
export function isShown(clusterId: string | null | undefined): boolean {
  return !chosenCluster.value || !clusterId || clusterId === chosenCluster.value.uuid;
}

/** The name of a cluster, if there are several. */
export function nameOfCluster(id: string): string {
  return clusters.value.length > 1 ? (clusters.value.find((one) => one.uuid === id)?.name ?? "") : "";
}
