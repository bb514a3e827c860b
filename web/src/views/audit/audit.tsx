// Who did what, from where, and what came of it.
import { get, type Schemas, urlOf } from "../../api/client";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, now, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { query, setQuery } from "../../router";
import { SPANS, selectEntries, spanOf } from "./entries";

const MOST = 500;

export function Audit() {
  const span = spanOf(query.value.get("span"));
  const search = query.value.get("q") ?? "";
  // To the minute, so that the same lines are not loaded again and again.
  const end = Math.ceil(now.value / 60_000) * 60_000;
  const times = { start: new Date(end - span.hours * 3_600_000).toISOString(), end: new Date(end).toISOString() };
  const { value, error } = useLoad(
    (signal) =>
      get("/api/v1/audit/log", { query: { ...times, numberOfSamples: MOST, sortOrder: "desc" }, signal }),
    JSON.stringify(times),
  );
  const shown = selectEntries(value?.audit_logs ?? [], search);
  return (
    <div class={parts.page}>
      <ViewTitle>Audit</ViewTitle>
      <div class={parts.tools}>
        <input
          type="search"
          aria-label="Search the audit log"
          placeholder="Search (press /)"
          value={search}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
        <select
          aria-label="Time"
          value={span.name}
          onChange={(event) => setQuery({ span: event.currentTarget.value })}
        >
          {SPANS.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
        <a href={urlOf("/api/v1/audit/log/file", { query: { ...times, file_type: "CSV" } })} download="audit.csv">
          Download as CSV
        </a>
        {value && (
          <span class={parts.quiet} role="status">
            {shown.length} of {value.total} entries
          </span>
        )}
      </div>
      <Problem error={error} />
      {value && shown.length === 0 && <Empty>No entry matches.</Empty>}
      {shown.length > 0 && (
        <Table label="Entries of the audit log" columns={COLUMNS} rows={shown} keyOf={(entry) => entry.id} />
      )}
    </div>
  );
}

const COLUMNS: Column<Schemas["AuditEntry"]>[] = [
  { title: "When", cell: (entry) => <Time at={entry.timestamp} /> },
  { title: "Who", cell: (entry) => entry.subject },
  { title: "Action", cell: (entry) => entry.action },
  { title: "What", cell: (entry) => `${entry.entity_type} ${entry.entity_name}` },
  { title: "Result", cell: (entry) => entry.result },
  { title: "From", cell: (entry) => entry.source_ip },
];
