// Everything at a glance: GPUs, who runs and who waits, what changed and what needs attention.
import { get, type Schemas } from "../../api/client";
import { may } from "../../api/session";
import { useLoad } from "../../parts/load";
import { Bar, css as parts, Empty, now, Panel, Phase, Problem, Time, ViewTitle } from "../../parts/parts";
import { amount, count, span } from "../../parts/texts";
import { href } from "../../router";
import { chosenCluster, clusters, isShown } from "../../store/clusters";
import { isRunning, isWaiting, type Row } from "../../store/rows";
import { hasLoaded, rows } from "../../store/workloads";
import css from "./overview.module.css";
import { changedLately, countByProject, needAttention } from "./summary";

const MOST_SHOWN = 12;

export function Overview() {
  const all = rows.value;
  const running = all.filter(isRunning);
  const attention = needAttention(all, now.value);
  const numbers: [string, number, string][] = [
    ["running", running.length, "/workloads?phase=Running"],
    ["waiting", all.filter(isWaiting).length, "/workloads?phase=Pending"],
    ["need attention", attention.length, "/workloads?attention=yes"],
  ];
  return (
    <div class={parts.page}>
      <ViewTitle>Overview</ViewTitle>
      <dl class={css.numbers}>
        {numbers.map(([title, value, to]) => (
          <div key={title} data-warns={(title === "need attention" && value > 0) || undefined}>
            <dt>{title}</dt>
            <dd>
              <a href={href(to)}>{value}</a>
            </dd>
          </div>
        ))}
      </dl>
      <div class={css.grid}>
        <div class={css.column}>
        {may("nodes:read") && (
          <Gpus version={running.map((row) => row.id).join()} sharing={running.filter((row) => row.gpusHeld % 1 !== 0)} />
        )}
        <Panel title="Projects">
          <Projects all={all} />
        </Panel>
        <Panel title="Needs attention">
          <Unreachable />
          <Rows shown={attention} none="Nothing needs attention." />
        </Panel>
        </div>
        <Panel title="Changed in the last hour">
          <Rows shown={changedLately(all, now.value)} none="Nothing has changed." />
        </Panel>
      </div>
    </div>
  );
}

function Rows({ shown, none }: { shown: Row[]; none: string }) {
  if (!hasLoaded.value) return <p class={parts.quiet}>Loading…</p>;
  if (shown.length === 0) return <p class={parts.quiet}>{none}</p>;
  return (
    <ul class={css.list}>
      {shown.slice(0, MOST_SHOWN).map((row) => (
        <li key={row.id}>
          <Phase phase={row.phase} /> <a href={href(`/workloads/${row.id}`)}>{row.name}</a>{" "}
          <span class={parts.quiet}>
            {row.project}, <Time at={row.phaseSince} />
          </span>
          <div class={parts.quiet}>{row.message}</div>
        </li>
      ))}
      {shown.length > MOST_SHOWN && <li class={parts.quiet}>and {shown.length - MOST_SHOWN} more</li>}
    </ul>
  );
}

function Projects({ all }: { all: Row[] }) {
  const counts = countByProject(all);
  if (counts.length === 0) {
    return <Empty command="fairlead run -- python3 train.py">Nothing runs and nothing waits. Run a workload:</Empty>;
  }
  return (
    <table class={css.table}>
      <thead>
        <tr>
          <th scope="col">Project</th>
          {["Running", "Waiting", "Longest wait", "GPUs held"].map((title) => (
            <th key={title} scope="col" data-number data-wide={title === "Longest wait" || undefined}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {counts.map((one) => (
          <tr key={one.project}>
            <th scope="row">
              <a href={href(`/workloads?project=${encodeURIComponent(one.project)}`)}>{one.project}</a>
            </th>
            <td data-number>{one.running}</td>
            <td data-number>{one.waiting}</td>
            <td data-number data-wide>{one.waiting > 0 ? span((now.value - one.waitsSince) / 1000) : "–"}</td>
            <td data-number>{amount(one.gpus)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A telemetry answer as the values of its node pools. */
function byPool(view: Schemas["TelemetryView"]): Map<string, number> {
  return new Map(view.values.map((one) => [one.groups?.[0]?.value ?? "", Number(one.value)]));
}

/** Nodes that are not ready, and clusters that the server cannot reach. */
function Unreachable() {
  const nodes = useLoad((signal) => get("/api/v1/nodes", { query: { limit: 500 }, signal }), String(Math.floor(now.value / 30_000)));
  const lost = (nodes.value?.nodes ?? []).filter((node) => node.status !== "Ready" && isShown(node.clusterUuid));
  const away = clusters.value.filter((one) => one.status?.state === "Disconnected" && isShown(one.uuid));
  if (lost.length + away.length === 0) return null;
  return (
    <ul class={css.list}>
      {away.map((cluster) => (
        <li key={cluster.uuid}>
          <Phase phase="Failed" label="Disconnected" /> cluster {cluster.name}
          {cluster.status?.reason && <div class={parts.quiet}>{cluster.status.reason}</div>}
        </li>
      ))}
      {lost.map((node) => (
        <li key={node.id}>
          <Phase phase="Unknown" label={node.status} /> node <a href={href("/cluster")}>{node.name}</a>
        </li>
      ))}
    </ul>
  );
}

function Gpus({ version, sharing }: { version: string; sharing: Row[] }) {
  const clusterId = chosenCluster.value?.uuid;
  const { value, error } = useLoad(async (signal) => {
    const types = ["TOTAL_GPUS", "READY_GPUS", "ALLOCATED_GPUS"];
    const load = (telemetryType: string) =>
      get("/api/v1/nodes/telemetry", { query: { telemetryType, groupBy: "Nodepool", clusterId }, signal });
    return (await Promise.all(types.map(load))).map(byPool);
  }, version + (clusterId ?? ""));
  const [total, ready, held] = value ?? [];
  return (
    <Panel title="GPUs by node pool">
      <Problem error={error} />
      {[...(total ?? [])].map(([pool, gpus]) => {
        const used = held?.get(pool) ?? 0;
        const away = gpus - (ready?.get(pool) ?? gpus);
        const text = `${amount(used)} of ${amount(gpus)} GPUs allocated, ${amount(Math.max(0, gpus - used - away))} idle`;
        return (
          <div key={pool} class={css.pool}>
            <strong>{pool}</strong> <span class={parts.quiet}>{away > 0 ? `${text}, ${amount(away)} unavailable` : text}</span>
            <Bar
              parts={[
                { name: "allocated", value: used },
                { name: "idle", value: Math.max(0, gpus - used - away), kind: "free" },
                { name: "unavailable", value: away, kind: "away" },
              ]}
              total={gpus}
              label={`${pool}: ${text}${away > 0 ? `, ${amount(away)} unavailable` : ""}`}
            />
          </div>
        );
      })}
      {sharing.length > 0 && (
        <p class={parts.quiet}>
          {count(sharing.length, "workload")} share{sharing.length === 1 ? "s" : ""} GPUs with others:{" "}
          {amount(sharing.reduce((sum, row) => sum + row.gpusHeld, 0))} of them in parts.
        </p>
      )}
    </Panel>
  );
}
