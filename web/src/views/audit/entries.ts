// The spans of time of the audit log, and the search in it.
import type { Schemas } from "../../api/client";

export interface TimeSpan {
  name: string;
  title: string;
  hours: number;
}

const DAY: TimeSpan = { name: "day", title: "Last day", hours: 24 };

export const SPANS: readonly TimeSpan[] = [
  { name: "hour", title: "Last hour", hours: 1 },
  DAY,
  { name: "week", title: "Last week", hours: 168 },
];

export function spanOf(name: string | null): TimeSpan {
  return SPANS.find((span) => span.name === name) ?? DAY;
}

export const RESULTS = ["Succeeded", "Failed"] as const;

/** The filter for the server: a part of the name of who did it, what came of it, and the id of a cluster. */
export function filterOf(who: string, result: string, cluster = ""): string | undefined {
  const conditions = [
    cluster && `cluster_id==${cluster}`,
    // A comma would begin the next condition.
    who && !who.includes(",") ? `subject=@${who}` : "",
    RESULTS.some((one) => one === result) ? `result==${result}` : "",
  ];
  return conditions.filter(Boolean).join(",") || undefined;
}

/** The entries that have every word somewhere. */
export function selectEntries(entries: readonly Schemas["AuditEntry"][], search: string): Schemas["AuditEntry"][] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter((entry) => {
    const facts = [entry.subject, actionOf(entry), entry.action, entry.entity_type, entry.entity_name, entry.result, entry.source_ip];
    const text = facts.join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** What was done: the operation, which says more than the kind of action: `suspend`, `execute in workload`. */
export function actionOf(entry: Pick<Schemas["AuditEntry"], "action" | "metadata">): string {
  if (entry.action === "sign-in") return entry.action;
  return (entry.metadata["operation"] ?? entry.action).replaceAll("_", " ");
}

/** What came of it, with the status of a refusal. */
export function resultOf(entry: Pick<Schemas["AuditEntry"], "result" | "http_status_code">): string {
  const status = entry.result === "Failed" ? entry.http_status_code : undefined;
  return status ? `${entry.result} (${status})` : entry.result;
}

/** What an entry is about, as people call it: `workload train`, `access rule`. */
export function subjectOf(entry: Pick<Schemas["AuditEntry"], "entity_type" | "entity_name">): string {
  const words = entry.entity_type.replaceAll("_", " ");
  const one = words.endsWith("ies") ? `${words.slice(0, -3)}y` : words.replace(/s$/, "");
  return `${one} ${entry.entity_name}`.trim();
}
