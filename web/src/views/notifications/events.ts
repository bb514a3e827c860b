// The events that a rule can name, and a rule in words.
import type { Schemas } from "../../api/client";
import { span } from "../../parts/texts";

type Rule = Schemas["NotificationRuleView"];

export const EVENTS: readonly [string, string][] = [
  ["started", "a workload starts"],
  ["completed", "a workload completes"],
  ["failed", "a workload fails"],
  ["evicted", "a workload is evicted"],
  ["idle", "the GPUs of a workload are idle, before and when it is stopped for that"],
  ["waiting", "a workload waits for a long time"],
  ["quota", "the project reaches its quota"],
];

export const CHANNELS: readonly [string, string, string][] = [
  ["webhook", "Webhook", "URL"],
  ["slack", "Slack", "URL of the incoming webhook"],
  ["email", "Mail", "Mail address"],
];

export function describeEvents(rule: Pick<Rule, "on" | "waitingSeconds">): string {
  return rule.on.map((event) => (event === "waiting" ? `waiting (${span(rule.waitingSeconds)})` : event)).join(", ");
}

/** Whose workloads a rule is about. */
export function describeSubject(rule: Pick<Rule, "projectId" | "owner">, projects: ReadonlyMap<string, string>): string {
  return rule.projectId ? `project ${projects.get(rule.projectId) ?? rule.projectId}` : `workloads of ${rule.owner}`;
}
