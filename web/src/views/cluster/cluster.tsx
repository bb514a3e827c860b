// The nodes with their GPUs, and who holds each of them.
import { useState } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { may } from "../../api/session";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, Phase, Problem, ViewTitle } from "../../parts/parts";
import { amount, count } from "../../parts/texts";
import { href } from "../../router";
import { chosenCluster, clusters, isShown, nameOfCluster } from "../../store/clusters";
import { isRunning, type Row } from "../../store/rows";
import { rows } from "../../store/workloads";
import css from "./cluster.module.css";
import { NodeDialog } from "./node-dialog";
import { drawNodes, freeOf, type Holder, huesOf, type NodePicture, type Snapshot } from "./devices";

export function Cluster() {
  const running = rows.value.filter(isRunning);
  const [changes, setChanges] = useState(0);
  const version = `${changes} ${running.map((row) => `${row.id}${row.gpusHeld}`).join()}`;
  const nodes = useLoad((signal) => get("/api/v1/nodes", { query: { limit: 500 }, signal }), version);
  const snapshot = useLoad(
    async (signal) => drawNodes((await get("/api/v1/scheduling/snapshot", { signal })) as Snapshot),
    version,
  );
  const ids = new Map(rows.value.map((row) => [`${row.project}/${row.name}`, row]));
  // The snapshot is of the first cluster; nodes of others may have the same names.
  const first = clusters.value[0]?.uuid;
  const shown = (nodes.value?.nodes ?? []).filter((node) => isShown(node.clusterUuid));
  const topologies = useLoad(
    async (signal) => (await get("/api/v1/network-topologies", { signal })).networkTopologies,
    chosenCluster.value?.uuid ?? "",
  );
  const hues = huesOf(snapshot.value ?? []);
  const levels = [...new Set((topologies.value ?? []).flatMap((one) => one.levels))];
  return (
    <div class={parts.page}>
      <ViewTitle>Cluster</ViewTitle>
      <Problem error={nodes.error} />
      {snapshot.error && <p class={parts.quiet}>Who holds which GPU is not shown: {snapshot.error.message}</p>}
      {shown.some((node) => node.clusterUuid !== first) && (
        <p class={parts.quiet}>Who holds which GPU, and what-if, are known only for {clusters.value[0]?.name}.</p>
      )}
      <Topologies topologies={(topologies.value ?? []).filter((one) => isShown(one.clusterId))} />
      {!nodes.value && !nodes.error && <p class={parts.quiet}>Loading…</p>}
      {nodes.value && shown.length === 0 && <Empty command="fairlead serve">There are no nodes. Start a server with:</Empty>}
      {hues.size > 0 && <Legend hues={hues} />}
      {poolsOf(shown).map(([pool, inside]) => (
        <section key={pool} aria-label={`Node pool ${pool}`}>
          <h2>Node pool {pool}</h2>
          <div class={css.nodes}>
            {inside.map((node) => (
              <Node
                key={node.id}
                node={node}
                picture={node.clusterUuid === first ? snapshot.value?.find((one) => one.name === node.name) : undefined}
                levels={levels}
                ids={ids}
                hues={hues}
                onChanged={() => setChanges((last) => last + 1)}
              />
            ))}
          </div>
        </section>
      ))}
    </div>
  );
}

type NodeRow = Schemas["NodeView"];

/** The nodes of each pool; pools of several clusters are told apart by the cluster. */
function poolsOf(nodes: readonly NodeRow[]): [string, NodeRow[]][] {
  const pools = new Map<string, NodeRow[]>();
  for (const node of nodes) {
    const cluster = nameOfCluster(node.clusterUuid);
    const title = cluster ? `${node.nodePool} of ${cluster}` : node.nodePool;
    pools.set(title, [...(pools.get(title) ?? []), node]);
  }
  return [...pools].sort(([a], [b]) => a.localeCompare(b));
}

function Topologies({ topologies }: { topologies: Schemas["NetworkTopologyView"][] }) {
  if (topologies.length === 0) return null;
  return (
    <p class={parts.quiet}>
      {topologies.map((one) => (
        <span key={one.id}>
          Topology <strong>{one.name}</strong>, by node labels: {one.levels.join(", then ")}
          {one.nodePools.length > 0 && ` (node pool ${one.nodePools.join(", ")})`}.{" "}
        </span>
      ))}
    </p>
  );
}

interface NodeProps {
  node: Schemas["NodeView"];
  picture: NodePicture | undefined;
  /** Labels that topologies are made of. */
  levels: string[];
  ids: Map<string, Row>;
  /** The colours of projects. */
  hues: ReadonlyMap<string, number>;
  onChanged: () => void;
}

function Legend({ hues }: { hues: ReadonlyMap<string, number> }) {
  return (
    <ul class={css.legend} aria-label="Projects in the drawing">
      {[...hues].map(([project, hue]) => (
        <li key={project}>
          <i data-hue={hue} aria-hidden="true" />
          {project}
        </li>
      ))}
      <li>
        <i data-free aria-hidden="true" />
        free
      </li>
    </ul>
  );
}

/** What is said of a node that takes no new pods. */
function maintenanceOf(node: NodeRow, picture: NodePicture | undefined): string {
  if (!node.draining) return node.cordoned ? ", cordoned" : "";
  if (!picture) return ", draining";
  return picture.pods ? `, draining: ${count(picture.pods, "pod")} left` : ", drained";
}

function Node({ node, picture, levels, ids, hues, onChanged }: NodeProps) {
  const devices = picture?.devices ?? Array.from({ length: node.gpuInfo?.gpuCount ?? 0 }, (): Holder[] => []);
  const free = freeOf(devices);
  const [isAsking, setAsking] = useState(false);
  const offer = may("nodes:update") ? "Drain, what if…" : "What if…";
  return (
    <article class={css.node} aria-label={`Node ${node.name}`}>
      <div class={css.name}>
        <h3>{node.name}</h3>
        {(picture !== undefined || may("nodes:update")) && (
          <button type="button" aria-label={`${offer} ${node.name}`} onClick={() => setAsking(true)}>
            {offer}
          </button>
        )}
      </div>
      {isAsking && (
        <NodeDialog node={node} isKnown={Boolean(picture)} onClose={() => setAsking(false)} onChanged={onChanged} />
      )}
      <p class={parts.quiet}>
        <Phase phase={node.status === "Ready" ? "Running" : "Unknown"} label={node.status} />
        {maintenanceOf(node, picture)} · {count(devices.length, "GPU")}
        {node.gpuInfo && node.gpuInfo.gpuType !== "GPU" && ` ${node.gpuInfo.gpuType}`}
        {picture && devices.length > 0 && `, ${free.whole} free`}
        {picture && free.left > 0 && `, ${amount(free.left)} left in shared ones`}
        {levels.filter((level) => picture?.labels[level]).map((level) => ` · ${level} ${picture?.labels[level] ?? ""}`)}
      </p>
      <ol class={css.devices}>
        {devices.map((holders, device) => (
          <Device key={device} number={device} holders={picture && holders} ids={ids} hues={hues} />
        ))}
      </ol>
    </article>
  );
}

interface DeviceProps {
  number: number;
  /** Undefined if nobody knows. */
  holders: Holder[] | undefined;
  ids: Map<string, Row>;
  hues: ReadonlyMap<string, number>;
}

/** One GPU, filled as far as it is used, each part in the colour of its project. */
function Device({ number, holders, ids, hues }: DeviceProps) {
  const left = 1 - (holders ?? []).reduce((sum, holder) => sum + holder.portion, 0);
  return (
    <li class={css.device} data-free={holders?.length === 0 || undefined}>
      <span class={css.number}>GPU {number}</span>
      {(holders ?? []).map((holder) => (
        <Portion
          key={`${holder.project}/${holder.workload}`}
          holder={holder}
          id={ids.get(`${holder.project}/${holder.workload}`)?.id}
          hue={hues.get(holder.project)}
        />
      ))}
      {holders && left > 0.001 && (
        <span class={css.free} style={{ flexGrow: left }}>
          {holders.length > 0 && `${amount(left)} `}free
        </span>
      )}
    </li>
  );
}

function Portion({ holder, id, hue }: { holder: Holder; id: string | undefined; hue: number | undefined }) {
  const name = `${holder.project}/${holder.workload}`;
  const isPart = holder.portion < 1;
  return (
    <span class={css.portion} data-hue={hue} data-part={isPart || undefined} style={{ flexGrow: holder.portion }} title={name}>
      {id ? <a href={href(`/workloads/${id}`)}>{holder.workload}</a> : <span>{holder.workload}</span>}
      <span class={css.share}>{isPart ? amount(holder.portion) : holder.project}</span>
    </span>
  );
}
