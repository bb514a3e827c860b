// The views: where each one is, and the key that leads to it. Views that the first look does not need are loaded later.
import { type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Overview } from "./overview/overview";
import { Workloads } from "./workloads/workloads";

interface Section {
  path: string;
  title: string;
  key: string;
}

export const SECTIONS: readonly Section[] = [
  { path: "/", title: "Overview", key: "o" },
  { path: "/workloads", title: "Workloads", key: "w" },
  { path: "/cluster", title: "Cluster", key: "c" },
  { path: "/organization", title: "Organization", key: "p" },
  { path: "/audit", title: "Audit", key: "a" },
  { path: "/settings", title: "Settings", key: "s" },
];

const Workload = later(async () => (await import("./workload/workload")).WorkloadView);
const Cluster = later(async () => (await import("./cluster/cluster")).Cluster);
const Organization = later(async () => (await import("./organization/organization")).Organization);
const Audit = later(async () => (await import("./audit/audit")).Audit);
const Settings = later(async () => (await import("./settings/settings")).Settings);

const VIEWS: [RegExp, ComponentType][] = [
  [/^\/$/, Overview],
  [/^\/workloads\/?$/, Workloads],
  [/^\/workloads\/[^/]+/, Workload],
  [/^\/cluster/, Cluster],
  [/^\/organization/, Organization],
  [/^\/audit/, Audit],
  [/^\/settings/, Settings],
];

export function viewOf(path: string): ComponentType {
  return VIEWS.find(([pattern]) => pattern.test(path))?.[1] ?? NotFound;
}

function NotFound() {
  return h("p", { style: { padding: "1rem" } }, "There is nothing at this address; the links above lead to all views.");
}

function later(load: () => Promise<ComponentType>): ComponentType {
  return function Later() {
    const [view, setView] = useState<{ part?: ComponentType }>({});
    useEffect(() => {
      void load().then((part) => setView({ part }));
    }, []);
    return view.part ? h(view.part, null) : h("p", { style: { padding: "1rem" } }, "Loading…");
  };
}
