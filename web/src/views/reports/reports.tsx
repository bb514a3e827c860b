// Who used, borrowed, lent and waited for GPUs, and how busy the node pools were.
import { get, type Schemas } from "../../api/client";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, now, Panel, Problem, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { amount, exactTime } from "../../parts/texts";
import { query, setQuery } from "../../router";
import { chosenCluster } from "../../store/clusters";
import { asCsv, daysOf, type Group, GROUPS, gpuHours, groupOf, nameOf, PERIODS, type PoolHours, poolsOf, sortRows, type UsageRow } from "./report";
import css from "./reports.module.css";

export function Reports() {
  const days = daysOf(query.value.get("period"));
  const group = groupOf(query.value.get("by"));
  // To the minute, so that the same report is not loaded again and again.
  const end = Math.ceil(now.value / 60_000) * 60_000;
  const clusterId = chosenCluster.value?.uuid;
  const key = `${days} ${group} ${end} ${clusterId ?? ""}`;
  const times = { since: new Date(end - days * 86_400_000).toISOString(), until: new Date(end).toISOString() };
  const load = (by: string, signal: AbortSignal) => get("/api/v1/usage", { query: { ...times, by, clusterId }, signal });
  const report = useLoad((signal) => load(group, signal), key);
  const pools = useLoad((signal) => load("nodepool,day", signal), key);
  const rows = sortRows(report.value?.rows ?? [], group);
  return (
    <div class={parts.page}>
      <ViewTitle>Reports</ViewTitle>
      <div class={parts.tools}>
        <Choice label="Period" value={PERIODS.find((one) => one.days === days)?.name ?? ""} name="period">
          {PERIODS.map((period) => [period.name, period.title])}
        </Choice>
        <Choice label="By" value={group} name="by">
          {GROUPS.map((name) => [name, `By ${name}`])}
        </Choice>
        {rows.length > 0 && (
          <button type="button" onClick={() => download(asCsv(rows, group), `usage-by-${group}.csv`)}>
            Download as CSV
          </button>
        )}
        {report.value && (
          <span class={parts.quiet}>
            {exactTime(Date.parse(report.value.since))} to {exactTime(Date.parse(report.value.until))}
          </span>
        )}
      </div>
      <Problem error={report.error ?? pools.error} />
      {report.value && rows.length === 0 && (
        <Empty command="fairlead run --gpu 1 -- python train.py">
          Nothing used or waited for resources in this period. Run something:
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          label={`Usage by ${group}`}
          columns={columnsOf(group)}
          rows={rows}
          keyOf={(row) => `${nameOf(row, group)} ${row.workloadId ?? row.projectId ?? ""}`}
        />
      )}
      {pools.value && pools.value.nodePools.length > 0 && <Allocation rows={pools.value.nodePools} />}
    </div>
  );
}

function Choice(props: { label: string; name: string; value: string; children: [string, string][] }) {
  return (
    <select
      aria-label={props.label}
      value={props.value}
      onChange={(event) => setQuery({ [props.name]: event.currentTarget.value })}
    >
      {props.children.map(([value, title]) => (
        <option key={value} value={value}>
          {title}
        </option>
      ))}
    </select>
  );
}

function columnsOf(group: Group): Column<UsageRow>[] {
  const hours = (title: string, read: (row: UsageRow) => number): Column<UsageRow> => ({
    title,
    isNumber: true,
    cell: (row) => amount(read(row)),
  });
  return [
    { title: group.charAt(0).toUpperCase() + group.slice(1), cell: (row) => nameOf(row, group) },
    hours("GPU-hours", (row) => gpuHours(row.used)),
    hours("Within quota", (row) => gpuHours(row.withinQuota)),
    hours("Borrowed", (row) => gpuHours(row.borrowed)),
    hours("Lent", (row) => gpuHours(row.lent)),
    hours("Core-hours", (row) => row.used.cpuHours ?? 0),
    hours("GiB-hours", (row) => row.used.memoryGibHours ?? 0),
    hours("Hours waited", (row) => row.waitedHours),
  ];
}

/** How much of the GPUs of each pool was in use, day by day. */
function Allocation({ rows }: { rows: Schemas["PoolRow"][] }) {
  const pools = poolsOf(rows);
  if (pools.length === 0) return null;
  return (
    <Panel title="GPU-hours of the node pools, day by day">
      <div class={css.pools}>
        {pools.map((pool) => (
          <figure key={pool.name} class={css.pool}>
            <figcaption>
              <strong>{pool.name}</strong> <span class={parts.quiet}>{sayHours(pool)}</span>
            </figcaption>
            <ol class={css.days}>
              {pool.days.map((day) => (
                <li key={day.day} title={`${day.day}: ${sayHours(day)}`}>
                  <span class={parts.hidden}>
                    {day.day}: {sayHours(day)}
                  </span>
                  <i style={{ height: `${Math.min(100, (100 * day.used) / day.capacity)}%` }} />
                </li>
              ))}
            </ol>
            <p class={css.axis} aria-hidden="true">
              <span>{pool.days[0]?.day}</span>
              {pool.days.length > 1 && <span>{pool.days.at(-1)?.day}</span>}
            </p>
          </figure>
        ))}
      </div>
    </Panel>
  );
}

function sayHours({ used, capacity, unavailable }: PoolHours): string {
  const text = `${amount(used)} of ${amount(capacity)} GPU-hours used (${Math.round((100 * used) / capacity)}\u00a0%)`;
  return unavailable > 0 ? `${text}, ${amount(unavailable)} unavailable` : text;
}

function download(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
