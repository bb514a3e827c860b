// What a service has beyond a job: its revisions, each with its replicas and how it scales.
import { get } from "../../api/client";
import { useLoad } from "../../parts/load";
import { Bar, css as parts, Panel, Phase, Problem, Time } from "../../parts/parts";
import { count } from "../../parts/texts";
import css from "./workload.module.css";

export function Revisions({ id, version }: { id: string; version: string }) {
  const { value, error } = useLoad(
    (signal) =>
      get("/api/v1/workloads/inferences/{workloadId}/revisions", { path: { workloadId: id }, signal }),
    id + version,
  );
  const revisions = (value?.revisions ?? []).filter((one) => one.deletedAt === null);
  return (
    <Panel title="Revisions and replicas">
      <Problem error={error} />
      <ul class={css.events}>
        {revisions.map((one) => {
          const asked = one.requestedPods;
          const scale = asked?.max && asked.max !== asked.min ? `, scales from ${asked.min ?? 0} to ${asked.max}` : "";
          return (
            <li key={one.id}>
              <Phase phase={one.phase} /> <strong>{one.name}</strong>{" "}
              <span class={parts.quiet}>
                {count(one.runningPods, "replica")} of {asked?.number ?? 0}
                {scale}
                {one.isServing && " · all requests go to it"} · <Time at={one.createdAt} />
              </span>
              <Bar
                parts={[{ name: "ready", value: one.runningPods }]}
                total={Math.max(asked?.max ?? 0, asked?.number ?? 0, one.runningPods)}
                label={`${one.name}: ${count(one.runningPods, "replica")} ready`}
              />
              {(one.images ?? []).length > 0 && <div class={parts.quiet}>{(one.images ?? []).join(", ")}</div>}
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}
