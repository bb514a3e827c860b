// Where each view is, what it is called, and the key that leads to it.
import { may } from "../api/session";

interface Section {
  path: string;
  title: string;
  key: string;
  /** The first of a group has a line above it. */
  isFirst?: boolean;
  /** The permission without which there is nothing to see. */
  needs?: string;
}

const ALL: readonly Section[] = [
  { path: "/", title: "Overview", key: "o" },
  { path: "/workloads", title: "Workloads", key: "w" },
  { path: "/submit", title: "Submit", key: "n" },
  { path: "/cluster", isFirst: true, title: "Cluster", key: "c", needs: "nodes:read" },
  { path: "/organization", title: "Organization", key: "p" },
  { path: "/people", isFirst: true, title: "People", key: "u", needs: "users:read" },
  { path: "/policies", title: "Policies", key: "l" },
  { path: "/library", title: "Library", key: "b" },
  { path: "/reports", isFirst: true, title: "Reports", key: "r" },
  { path: "/audit", title: "Audit", key: "a", needs: "events-history:read" },
  { path: "/notifications", title: "Notifications", key: "t" },
  { path: "/settings", title: "Settings", key: "s" },
];

/** The views that the user can see something in. */
export function sections(): readonly Section[] {
  return ALL.filter((section) => !section.needs || may(section.needs));
}
