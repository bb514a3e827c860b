// The parts of a workload's page that show records as they are: timeline, pods, events, spec.
import { useState } from "preact/hooks";
import { get, type Schemas, send } from "../../api/client";
import { Dialects } from "../../parts/dialects";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, Panel, Phase, Problem, Time } from "../../parts/parts";
import { count, countGpus } from "../../parts/texts";
import { type Arrangement, devicesOf, groupsOf, nodesOf, rangesOf, roleOf } from "./pods";
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

interface PodsProps {
  pods: Schemas["PodView"][];
  workload: string;
  arrangement: Arrangement;
}

/** The pods as a picture: nodes or groups as boxes, in them the pods with their role and their GPUs. */
export function Pods({ pods, workload, arrangement }: PodsProps) {
  const groups = groupsOf(pods, workload, arrangement);
  const hasGroups = groups.length > 0;
  const [byGroup, setByGroup] = useState(hasGroups);
  const boxes = byGroup && hasGroups ? groups : nodesOf(pods);
  return (
    <Panel title="Pods">
      {pods.length === 0 && <p class={parts.quiet}>It has no pods now.</p>}
      {hasGroups && (
        <div class={parts.choices} role="group" aria-label="Arrange the pods">
          <button type="button" aria-pressed={byGroup} onClick={() => setByGroup(true)}>
            {arrangement === "revisions" ? "By revision" : "By group"}
          </button>
          <button type="button" aria-pressed={!byGroup} onClick={() => setByGroup(false)}>
            By node
          </button>
        </div>
      )}
      <div class={css.nodes}>
        {boxes.map(([title, inside]) => (
          <div key={title} class={css.node}>
            <h3>{title || "Not placed"}</h3>
            <ul>
              {inside.map((pod) => (
                <li key={pod.id} title={pod.message} class={css.pod}>
                  <Phase phase={pod.k8sPhase} label={roleOf(pod.name, workload, arrangement)} />
                  <Devices pod={pod} />
                  <span class={parts.quiet}>
                    {byGroup && hasGroups ? `on ${pod.nodeName ?? "no node"}` : pod.name}
                    {holdings(pod)}
                  </span>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </div>
    </Panel>
  );
}

const SHOWN_DEVICES = 16;

/** Its GPUs, each with its number if that is known, filled as far as they are its own. */
function Devices({ pod }: { pod: Schemas["PodView"] }) {
  const { devices, portion } = devicesOf(pod);
  return (
    <span class={css.devices} aria-hidden="true">
      {devices.slice(0, SHOWN_DEVICES).map((number, at) => (
        <i key={at} style={{ "--part": `${100 * portion}%` }}>
          {number}
        </i>
      ))}
      {devices.length > SHOWN_DEVICES && "…"}
    </span>
  );
}

function holdings(pod: Schemas["PodView"]): string {
  const facts = [];
  const gpus = pod.allocatedResources?.gpu ?? 0;
  if (gpus > 0) facts.push(countGpus(gpus));
  if (pod.gpuDevices?.length) facts.push(`${pod.gpuDevices.length === 1 ? "number" : "numbers"} ${rangesOf(pod.gpuDevices)}`);
  if (pod.restarts) facts.push(`restarted ${count(pod.restarts, "time")}`);
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
          <li key={event.id} class={css.record}>
            <Time at={event.createdAt} /> <strong>{event.reason}</strong> <span>{event.message}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function Spec({ id, hasYaml }: { id: string; hasYaml: boolean }) {
  return (
    <Panel title="Spec">
      <Dialects label="Spec as text" hasYaml={hasYaml} load={(dialect) => useSpecText(id, dialect)} />
    </Panel>
  );
}

function useSpecText(id: string, dialect: string) {
  return useLoad(async (signal) => {
    const path = { workloadId: id, dialect };
    return (await send("GET", "/api/v1/workloads/{workloadId}/as/{dialect}", { path, signal })).text();
  }, id + dialect);
}
