// Why a workload waits and when it starts: the blocker, the smallest changes that start it, the estimate, who holds what.
import { get, type Schemas } from "../../api/client";
import { useLoad } from "../../parts/load";
import { css as parts, Panel, Problem, Time } from "../../parts/parts";
import { withoutTimes } from "../../parts/start-message";
import { StartTimes } from "../../parts/start-times";
import { countGpus } from "../../parts/texts";
import { href } from "../../router";
import { Consequences } from "../workloads/consequences";
import { TryIt } from "./try-it";
import css from "./workload.module.css";

interface Props {
  id: string;
  version: string;
  /** What the head of the page says already. */
  said: string;
}

export function Why({ id, version, said }: Props) {
  const options = { path: { workloadId: id } };
  const why = useLoad((signal) => get("/api/v1/workloads/{workloadId}/why", { ...options, signal }), id + version);
  const estimate = useLoad(
    (signal) => get("/api/v1/workloads/{workloadId}/estimate", { ...options, signal }),
    id + version,
  );
  const explanation = useLoad(
    (signal) => get("/api/v1/workloads/{workloadId}/explanation", { ...options, query: { waiting: true }, signal }),
    id + version,
  );
  return (
    <Panel title="Why it waits, and until when">
      <Problem error={why.error} />
      {!why.value && !why.error && <p class={parts.quiet}>Loading…</p>}
      <Eviction eviction={explanation.value?.lastEviction} />
      {why.value && why.value.message !== said && <p class={css.headline}>{why.value.message}</p>}
      {estimate.value && <Estimate answer={estimate.value} />}
      {why.value && <Changes id={id} changes={why.value.changes ?? []} />}
      <Holders holders={explanation.value?.waiting?.holders ?? []} />
    </Panel>
  );
}

/** Why it does not run any more, if it ran before. */
function Eviction({ eviction }: { eviction: Schemas["EvictionView"] | undefined }) {
  if (!eviction) return null;
  return (
    <p>
      {eviction.message} <Time at={eviction.at} />
    </p>
  );
}

function Estimate({ answer }: { answer: Schemas["EstimateAnswer"] }) {
  return (
    <>
      <StartTimes p50={answer.p50} p90={answer.p90} />
      <p class={parts.quiet}>{withoutTimes(answer.message)}</p>
      {(answer.chain ?? []).length > 0 && (
        <ol class={css.chain}>
          {(answer.chain ?? []).map((step) => (
            <li key={`${step.at} ${step.workload} ${step.event}`}>
              <Time at={step.at * 1000} />
              <span>
                {step.workload} {step.event} <span class={parts.quiet}>({step.basis})</span>
              </span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

const PARTIES = { user: "you can do this", administrator: "an administrator can do this", time: "needs only time" };

function Changes({ id, changes }: { id: string; changes: Schemas["VerifiedChange"][] }) {
  if (changes.length === 0) return null;
  return (
    <>
      <h3>The smallest changes that start it</h3>
      <ul class={css.changes}>
        {changes.map((change) => (
          <li key={change.message}>
            <span>
              {change.message} <span class={parts.quiet}>({PARTIES[change.by]})</span>
            </span>
            <TryIt id={id} change={change} />
            {hasEffects(change.effects) && <Consequences effects={change.effects} />}
          </li>
        ))}
      </ul>
    </>
  );
}

function hasEffects(effects: Schemas["Effects"] | undefined): boolean {
  return Object.values(effects ?? {}).some((one) => (one.workloads ?? []).length > 0 || (one.hidden ?? 0) > 0);
}

function Holders({ holders }: { holders: Schemas["HolderView"][] }) {
  if (holders.length === 0) return null;
  return (
    <>
      <h3>Who holds what it waits for</h3>
      <ul class={css.holders}>
        {holders.map((holder) => (
          <li key={`${holder.project} ${holder.workload} ${holder.nodes.join()}`}>
            {holder.workloadId ? <a href={href(`/workloads/${holder.workloadId}`)}>{holder.workload}</a> : holder.workload}
            {` of ${holder.project} holds ${countGpus(holder.holds.gpu)} on ${holder.nodes.join(", ")}`}
            {holder.isOverQuota && " over its quota"}
            {!holder.preemptible && ", not preemptible"}
          </li>
        ))}
      </ul>
    </>
  );
}
