// The parts of a workload's page that show records as they are: timeline, pods, events, spec.
import { useState } from "preact/hooks";
import { get, type Schemas, send } from "../../api/client";
import { useLoad } from "../../parts/load";
import { CopyButton, css as parts, Empty, Panel, Phase, Problem, Time } from "../../parts/parts";
import { amount } from "../../parts/texts";
import css from "./workload.module.css";

export function Timeline({ id, version }: { id: string; version: string }) {
  const { value, error } = useLoad(
    (signal) =>
      get("/api/v1/workloads/{workloadId}/history", { path: { workloadId: id }, query: { limit: 500 }, signal }),
    id + version,
  );
  const steps = (value?.records ?? [])
    .filter((record) => record.meta.type === "PhaseUpdate")
    .sort((a, b) => a.meta.creationTimestamp.localeCompare(b.meta.creationTimestamp));
  return (
    <Panel title="Phases">
      <Problem error={error} />
      <ol class={css.timeline}>
        {steps.map((step) => (
          <li key={step.meta.creationTimestamp + (step.spec.phaseUpdate?.phase ?? "")}>
            <Phase phase={step.spec.phaseUpdate?.phase ?? ""} /> <Time at={step.meta.creationTimestamp} />
            <div class={parts.quiet}>{step.spec.phaseUpdate?.phaseMessage}</div>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

/** The pods by node, each with what it holds. */
export function Pods({ pods }: { pods: Schemas["PodView"][] }) {
  const nodes = [...new Set(pods.map((pod) => pod.nodeName ?? ""))].sort();
  return (
    <Panel title="Pods">
      {pods.length === 0 && <p class={parts.quiet}>It has no pods now.</p>}
      <div class={css.nodes}>
        {nodes.map((node) => (
          <div key={node} class={css.node}>
            <h3>{node || "Not placed"}</h3>
            <ul>
              {pods
                .filter((pod) => (pod.nodeName ?? "") === node)
                .map((pod) => (
                  <li key={pod.id} title={pod.message}>
                    <Phase phase={pod.k8sPhase} /> {pod.name}
                    <span class={parts.quiet}>{holdings(pod)}</span>
                  </li>
                ))}
            </ul>
          </div>
        ))}
      </div>
    </Panel>
  );
}

function holdings(pod: Schemas["PodView"]): string {
  const facts = [];
  const gpus = pod.allocatedResources?.gpu ?? 0;
  if (gpus > 0) facts.push(`${amount(gpus)} GPU`);
  if (pod.restarts) facts.push(`restarted ${pod.restarts} times`);
  if (pod.exitCode !== undefined) facts.push(`exit code ${pod.exitCode}`);
  return facts.length ? ` · ${facts.join(", ")}` : "";
}

export function Events({ id, version }: { id: string; version: string }) {
  const { value, error } = useLoad(
    (signal) =>
      get("/api/v1/workloads/{workloadId}/events", {
        path: { workloadId: id },
        query: { limit: 200, sortOrder: "desc" },
        signal,
      }),
    id + version,
  );
  return (
    <Panel title="Events">
      <Problem error={error} />
      {value?.events.length === 0 && <Empty>There are no events.</Empty>}
      <ul class={css.events}>
        {(value?.events ?? []).map((event) => (
          <li key={event.id}>
            <Time at={event.createdAt} /> <strong>{event.reason}</strong> {event.message}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const DIALECTS = [
  ["yaml", "YAML"],
  ["rest", "REST"],
  ["command", "Command"],
] as const;

export function Spec({ id }: { id: string }) {
  const [dialect, setDialect] = useState<string>("yaml");
  const { value, error } = useLoad(async (signal) => {
    const path = { workloadId: id, dialect };
    return (await send("GET", "/api/v1/workloads/{workloadId}/as/{dialect}", { path, signal })).text();
  }, id + dialect);
  return (
    <Panel title="Spec">
      <div class={css.tools}>
        {DIALECTS.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={dialect === name} onClick={() => setDialect(name)}>
            {title}
          </button>
        ))}
        <CopyButton text={value ?? ""} />
      </div>
      <Problem error={error} />
      <pre class={css.spec} tabIndex={0} role="region" aria-label="Spec as text">
        {value}
      </pre>
    </Panel>
  );
}
