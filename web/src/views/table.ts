// The view of each path. Views that the first look does not need are loaded later.
import type { ComponentType } from "preact";
import { later } from "../parts/later";
import { NotFound } from "./not-found";
import { Overview } from "./overview/overview";
import { Workloads } from "./workloads/workloads";

const Workload = later(async () => (await import("./workload/workload")).WorkloadView);
const Submit = later(async () => (await import("./submit/submit")).Submit);
const Cluster = later(async () => (await import("./cluster/cluster")).Cluster);
const Organization = later(async () => (await import("./organization/organization")).Organization);
const People = later(async () => (await import("./people/people")).People);
const Policies = later(async () => (await import("./policies/policies")).Policies);
const Library = later(async () => (await import("./library/library")).Library);
const Reports = later(async () => (await import("./reports/reports")).Reports);
const Audit = later(async () => (await import("./audit/audit")).Audit);
const Notifications = later(async () => (await import("./notifications/notifications")).Notifications);
const Settings = later(async () => (await import("./settings/settings")).Settings);

const VIEWS: [RegExp, ComponentType][] = [
  [/^\/$/, Overview],
  [/^\/workloads\/?$/, Workloads],
  [/^\/workloads\/[^/]+/, Workload],
  [/^\/submit/, Submit],
  [/^\/cluster/, Cluster],
  [/^\/organization/, Organization],
  [/^\/people/, People],
  [/^\/policies/, Policies],
  [/^\/library/, Library],
  [/^\/reports/, Reports],
  [/^\/audit/, Audit],
  [/^\/notifications/, Notifications],
  [/^\/settings/, Settings],
];

export function viewOf(path: string): ComponentType {
  return VIEWS.find(([pattern]) => pattern.test(path))?.[1] ?? NotFound;
}
