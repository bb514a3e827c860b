// Who did what, from where, and what came of it.
import { get, type Schemas, urlOf } from "../../api/client";
import { useSettled } from "../../parts/delay";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, now, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { query, setQuery } from "../../router";
import { chosenCluster } from "../../store/clusters";
import { actionOf, filterOf, RESULTS, resultOf, SPANS, selectEntries, spanOf, subjectOf } from "./entries";

const MOST = 500;
const PAUSE_MS = 300;

export function Audit() {
  const span = spanOf(query.value.get("span"));
  const search = query.value.get("q") ?? "";
  // To the minute, so that the same lines are not loaded again and again.
  const end = Math.ceil(now.value / 60_000) * 60_000;
  const times = { start: new Date(end - span.hours * 3_600_000).toISOString(), end: new Date(end).toISOString() };
  const who = query.value.get("who") ?? "";
  const result = query.value.get("result") ?? "";
  const asked = { ...times, filterBy: useSettled(filterOf(who, result, chosenCluster.value?.uuid), PAUSE_MS) };
  const { value, error } = useLoad(
    (signal) => get("/api/v1/audit/log", { query: { ...asked, numberOfSamples: MOST, sortOrder: "desc" }, signal }),
    JSON.stringify(asked),
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
        <input
          aria-label="Who"
          placeholder="Who"
          value={who}
          onInput={(event) => setQuery({ who: event.currentTarget.value })}
        />
        <select aria-label="Result" value={result} onChange={(event) => setQuery({ result: event.currentTarget.value })}>
          <option value="">Every result</option>
          {RESULTS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        {["CSV", "JSON"].map((type) => (
          <a
            key={type}
            href={urlOf("/api/v1/audit/log/file", { query: { ...asked, file_type: type } })}
            download={`audit.${type.toLowerCase()}`}
          >
            Download as {type}
          </a>
        ))}
        {value && (
          <span class={parts.quiet} role="status">
            {shown.length} of {value.total} entries
            {value.total > MOST && `; the newest ${MOST} are searched, the download has all`}
          </span>
        )}
      </div>
      <Problem error={error} />
      {value && shown.length === 0 && (
        <Empty>
          No entry matches.{" "}
          <button type="button" onClick={() => setQuery({ q: "", who: "", result: "", span: "week" })}>
            Show all of the last week
          </button>
        </Empty>
      )}
      {shown.length > 0 && (
        <Table label="Entries of the audit log" columns={COLUMNS} rows={shown} keyOf={(entry) => entry.id} />
      )}
    </div>
  );
}

const COLUMNS: Column<Schemas["AuditEntry"]>[] = [
  { title: "When", cell: (entry) => <Time at={entry.timestamp} /> },
  { title: "Who", cell: (entry) => entry.subject },
  { title: "Action", cell: actionOf },
  { title: "What", cell: subjectOf },
  { title: "Result", cell: resultOf },
  { title: "From", cell: (entry) => entry.source_ip },
];
