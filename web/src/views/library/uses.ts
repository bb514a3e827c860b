// Search in names, and how often an asset is used.
import type { Schemas } from "../../api/client";

export function matches(meta: { name: string; createdBy: string; description?: string | null }, search: string): boolean {
  const text = `${meta.name} ${meta.createdBy} ${meta.description ?? ""}`.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Where something can be used. */
export function scopeText(scope: string, project?: string): string {
  if (scope === "tenant" || scope === "system") return "the whole installation";
  return project ? `project ${project}` : scope;
}

/** How many workloads and other assets use it. */
export function countUses(usage: Schemas["AssetUsage"] | undefined): number {
  if (!usage) return 0;
  const { assets, ...workloads } = usage;
  const lists: unknown[] = [...Object.values(workloads), ...Object.values(assets)];
  return lists.reduce<number>((sum, list) => sum + (Array.isArray(list) ? list.length : 0), 0);
}
