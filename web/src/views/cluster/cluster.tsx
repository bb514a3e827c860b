// The nodes with their GPUs, and who holds each of them.
import { useState } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, Phase, Problem, ViewTitle } from "../../parts/parts";
import { amount, count } from "../../parts/texts";
import { href } from "../../router";
import { isRunning, type Row } from "../../store/rows";
import { rows } from "../../store/workloads";
import css from "./cluster.module.css";
import { NodeWhatIf } from "./node-what-if";
import { drawNodes, type Holder, type NodePicture, type Snapshot } from "./devices";

export function Cluster() {
  const running = rows.value.filter(isRunning);
  const version = running.map((row) => `${row.id}${row.gpusHeld}`).join();
  const nodes = useLoad((signal) => get("/api/v1/nodes", { query: { limit: 500 }, signal }), version);
  const snapshot = useLoad(
    async (signal) => drawNodes((await get("/api/v1/scheduling/snapshot", { signal })) as Snapshot),
    version,
  );
  const ids = new Map(rows.value.map((row) => [`${row.project}/${row.name}`, row]));
  const pools = [...new Set((nodes.value?.nodes ?? []).map((node) => node.nodePool))].sort();
  return (
    <div class={parts.page}>
      <ViewTitle>Cluster</ViewTitle>
      <Problem error={nodes.error} />
      {snapshot.error && <p class={parts.quiet}>Who holds which GPU is not shown: {snapshot.error.message}</p>}
      {nodes.value?.nodes.length === 0 && <Empty command="fairlead serve">There are no nodes. Start a server with:</Empty>}
      {pools.map((pool) => (
        <section key={pool} aria-label={`Node pool ${pool}`}>
          <h2>Node pool {pool}</h2>
          <div class={css.nodes}>
            {(nodes.value?.nodes ?? [])
              .filter((node) => node.nodePool === pool)
              .map((node) => (
                <Node
                  key={node.id}
                  node={node}
                  picture={snapshot.value?.find((one) => one.name === node.name)}
                  ids={ids}
                />
              ))}
          </div>
        </section>
      ))}
    </div>
  );
}

interface NodeProps {
  node: Schemas["NodeView"];
  picture: NodePicture | undefined;
  ids: Map<string, Row>;
}

function Node({ node, picture, ids }: NodeProps) {
  const devices = picture?.devices ?? Array.from({ length: node.gpuInfo?.gpuCount ?? 0 }, (): Holder[] => []);
  const free = devices.filter((holders) => holders.length === 0).length;
  const [isAsking, setAsking] = useState(false);
  return (
    <article class={css.node} aria-label={`Node ${node.name}`}>
      <div class={css.name}>
        <h3>{node.name}</h3>
        <button type="button" aria-label={`What if… ${node.name}`} onClick={() => setAsking(true)}>
          What if…
        </button>
      </div>
      {isAsking && <NodeWhatIf node={node.name} onClose={() => setAsking(false)} />}
      <p class={parts.quiet}>
        <Phase phase={node.status === "Ready" ? "Running" : "Unknown"} label={node.status} />
        {picture?.isCordoned && ", cordoned"} · {count(devices.length, "GPU")}
        {node.gpuInfo && node.gpuInfo.gpuType !== "GPU" && ` ${node.gpuInfo.gpuType}`}
        {picture && devices.length > 0 && `, ${free} free`}
      </p>
      <ol class={css.devices}>
        {devices.map((holders, device) => (
          <li key={device} class={css.device} data-free={picture && holders.length === 0 ? true : undefined}>
            <span class={css.number}>GPU {device}</span>
            {holders.map((holder) => (
              <Portion key={`${holder.project}/${holder.workload}`} holder={holder} ids={ids} />
            ))}
            {picture && holders.length === 0 && <span>free</span>}
          </li>
        ))}
      </ol>
    </article>
  );
}

function Portion({ holder, ids }: { holder: Holder; ids: Map<string, Row> }) {
  const name = `${holder.project}/${holder.workload}`;
  const row = ids.get(name);
  const text = holder.portion < 1 ? `${name} (${amount(holder.portion)})` : name;
  return (
    <span class={css.portion} style={{ flexGrow: holder.portion }}>
      {row ? <a href={href(`/workloads/${row.id}`)}>{text}</a> : text}
    </span>
  );
}
