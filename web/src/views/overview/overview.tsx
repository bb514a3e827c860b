// Everything at a glance: GPUs, who runs and who waits, what changed and what needs attention.
import { get, type Schemas } from "../../api/client";
import { may } from "../../api/session";
import { useLoad } from "../../parts/load";
import { Bar, css as parts, Empty, now, Panel, Phase, Problem, Time, ViewTitle } from "../../parts/parts";
import { amount, span } from "../../parts/texts";
import { href } from "../../router";
import { chosenCluster, clusters, isShown } from "../../store/clusters";
import { isRunning, isWaiting, type Row, RUNNING, WAITING } from "../../store/rows";
import { hasLoaded, rows } from "../../store/workloads";
import css from "./overview.module.css";
import { changedLately, countByProject, needAttention, sharedByPool } from "./summary";

const MOST_SHOWN = 12;

export function Overview() {
  const all = rows.value;
  const running = all.filter(isRunning);
  const attention = needAttention(all, now.value);
  const numbers: [string, number, string][] = [
    ["running", running.length, `/workloads?phase=${RUNNING.join()}`],
    ["waiting", all.filter(isWaiting).length, `/workloads?phase=${WAITING.join()}`],
    [attention.length === 1 ? "needs attention" : "need attention", attention.length, "/workloads?attention=yes"],
    ["GPUs held", running.reduce((sum, row) => sum + row.gpusHeld, 0), "/workloads?sort=-gpusHeld"],
  ];
  return (
    <div class={parts.page}>
      <ViewTitle>Overview</ViewTitle>
      <dl class={css.numbers}>
        {numbers.map(([title, value, to]) => (
          <div key={title} data-warns={(title.endsWith("attention") && value > 0) || undefined}>
            <dt>{title}</dt>
            <dd>
              <a href={href(to)}>{amount(value)}</a>
            </dd>
          </div>
        ))}
      </dl>
      <div class={css.grid}>
        <div class={css.column}>
        {may("nodes:read") && (
          <Gpus running={running} />
        )}
        <Panel title="Projects">
          <Projects all={all} />
        </Panel>
        <Panel title="Needs attention">
          {may("nodes:read") && <Unreachable />}
          <Rows shown={attention} none="Nothing needs attention." more="/workloads?attention=yes" />
        </Panel>
        </div>
        <Panel title="Changed in the last hour">
          <Rows shown={changedLately(all, now.value)} none="Nothing has changed." more="/workloads?sort=-phaseSince" />
        </Panel>
      </div>
    </div>
  );
}

/** The first of some workloads, and where all of them are. */
function Rows({ shown, none, more }: { shown: Row[]; none: string; more: string }) {
  if (!hasLoaded.value) return <p class={parts.quiet}>Loading…</p>;
  if (shown.length === 0) return <p class={parts.quiet}>{none}</p>;
  return (
    <ul class={css.list}>
      {shown.slice(0, MOST_SHOWN).map((row) => (
        <li key={row.id} class={css.change}>
          {row.isEvicted ? <Phase phase="Failed" label="Evicted" /> : <Phase phase={row.phase} />}
          <a href={href(`/workloads/${row.id}`)}>{row.name}</a>
          <span class={css.when}>
            {row.project} · <Time at={row.phaseSince} />
          </span>
          <div class={css.message}>{row.message}</div>
        </li>
      ))}
      {shown.length > MOST_SHOWN && (
        <li>
          <a href={href(more)}>and {shown.length - MOST_SHOWN} more</a>
        </li>
      )}
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

function Gpus({ running }: { running: Row[] }) {
  const clusterId = chosenCluster.value?.uuid;
  const version = running.map((row) => `${row.id}${row.gpusHeld}`).join();
  const { value, error } = useLoad(async (signal) => {
    const types = ["TOTAL_GPUS", "READY_GPUS", "ALLOCATED_GPUS"];
    const load = (telemetryType: string) =>
      get("/api/v1/nodes/telemetry", { query: { telemetryType, groupBy: "Nodepool", clusterId }, signal });
    return (await Promise.all(types.map(load))).map(byPool);
  }, version + (clusterId ?? ""));
  const [total, ready, held] = value ?? [];
  const sharing = sharedByPool(running);
  return (
    <Panel title="GPUs by node pool">
      <Problem error={error} />
      {!value && !error && <p class={parts.quiet}>Loading…</p>}
      {value && total?.size === 0 && (
        <Empty command="fairlead doctor">No node has a GPU. See what was found on this machine:</Empty>
      )}
      {[...(total ?? [])].map(([pool, gpus]) => (
        <Pool
          key={pool}
          name={pool}
          gpus={gpus}
          held={held?.get(pool) ?? 0}
          shared={sharing.get(pool) ?? 0}
          away={gpus - (ready?.get(pool) ?? gpus)}
        />
      ))}
    </Panel>
  );
}

interface PoolProps {
  name: string;
  gpus: number;
  /** Whole GPUs and parts of them. */
  held: number;
  /** The parts. */
  shared: number;
  away: number;
}

function Pool({ name, gpus, held, shared, away }: PoolProps) {
  const idle = Math.max(0, gpus - held - away);
  const text = [
    `${amount(held)} of ${amount(gpus)} GPUs allocated`,
    ...(shared > 0 ? [`${amount(shared)} of them in shared GPUs`] : []),
    `${amount(idle)} idle`,
    ...(away > 0 ? [`${amount(away)} unavailable`] : []),
  ].join(", ");
  return (
    <div class={css.pool}>
      <p>
        <strong>{name}</strong> <span class={parts.quiet}>{text}</span>
      </p>
      <Bar
        parts={[
          { name: "allocated", value: Math.max(0, held - shared) },
          { name: "shared", value: Math.min(shared, held), kind: "shared" },
          { name: "idle", value: idle, kind: "free" },
          { name: "unavailable", value: away, kind: "away" },
        ]}
        total={gpus}
        label={`${name}: ${text}`}
      />
    </div>
  );
}
