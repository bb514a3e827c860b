// Paths below /ui/, and the query, as state. Views read both and change both; the browser's back button works.
import { computed, signal } from "@preact/signals";

const BASE = "/ui";
const place = signal(new URL(location.href));

export const path = computed(() => place.value.pathname.slice(BASE.length) || "/");
export const query = computed(() => place.value.searchParams);
/** Apart from the query, so that links are not drawn again when somebody types into a search. */
const cluster = computed(() => query.value.get("cluster") ?? "");

addEventListener("popstate", () => (place.value = new URL(location.href)));

/** A path with its query, which keeps the cluster that is looked at unless it names another. */
export function withCluster(to: string, cluster: string): string {
  if (!cluster || /[?&]cluster=/.test(to)) return to;
  return `${to}${to.includes("?") ? "&" : "?"}cluster=${encodeURIComponent(cluster)}`;
}

export const href = (to: string): string => BASE + withCluster(to, cluster.value);

export function go(to: string): void {
  history.pushState(null, "", href(to));
  place.value = new URL(location.href);
  scrollTo(0, 0);
}

/** Changes parts of the query in place; an empty value removes a part. */
export function setQuery(parts: Record<string, string>): void {
  const next = new URL(place.value);
  for (const [name, value] of Object.entries(parts)) {
    if (value) next.searchParams.set(name, value);
    else next.searchParams.delete(name);
  }
  history.replaceState(null, "", next);
  place.value = next;
}

/** Follows a click on a link of the page itself without loading the page again. */
export function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(`${BASE}/`)) return;
  event.preventDefault();
  go(link.pathname.slice(BASE.length) + link.search);
}
