// Where each view is, what it is called, and the key that leads to it.
interface Section {
  path: string;
  title: string;
  key: string;
  /** The first of a group has a line above it. */
  isFirst?: boolean;
}

export const SECTIONS: readonly Section[] = [
  { path: "/", title: "Overview", key: "o" },
  { path: "/workloads", title: "Workloads", key: "w" },
  { path: "/submit", title: "Submit", key: "n" },
  { path: "/cluster", isFirst: true, title: "Cluster", key: "c" },
  { path: "/organization", title: "Organization", key: "p" },
  { path: "/people", isFirst: true, title: "People", key: "u" },
  { path: "/policies", title: "Policies", key: "l" },
  { path: "/library", title: "Library", key: "b" },
  { path: "/reports", isFirst: true, title: "Reports", key: "r" },
  { path: "/audit", title: "Audit", key: "a" },
  { path: "/settings", title: "Settings", key: "s" },
];
