// What would happen if the form were submitted now, beside the form while it is filled in.
import { type ApiError, post, type Schemas } from "../../api/client";
import { type Loaded, useLoad } from "../../parts/load";
import { css as parts, Phase } from "../../parts/parts";
import { withoutTimes } from "../../parts/start-message";
import { StartTimes } from "../../parts/start-times";
import { count } from "../../parts/texts";
import { Consequences } from "../workloads/consequences";
import css from "./submit.module.css";

type PlanAnswer = Schemas["PlanAnswer"];

const TITLES: Record<PlanAnswer["status"], [string, string]> = {
  starts: ["Running", "Starts now"],
  waits: ["Pending", "Has to wait"],
  never: ["Failed", "Can never start"],
  notWaiting: ["Stopped", "Has nothing to start"],
};

/** The plan for a request; the request is checked as a submission is, so an error has every violation. */
export function usePlan(rest: string, request: string): Loaded<PlanAnswer | null> {
  return useLoad(async (signal) => {
    if (!request) return null;
    const path = `/api/v1/workloads/${rest}` as "/api/v1/workloads/trainings";
    const body: unknown = JSON.parse(request);
    return (await post(path, { query: { dryRun: "plan" }, body, signal })) as PlanAnswer;
  }, rest + request);
}

interface Props {
  plan: Loaded<PlanAnswer | null>;
  /** Whether a submission was refused, which says the same as the plan would. */
  isRefused: boolean;
}

export function Plan({ plan, isRefused }: Props) {
  const answer = plan.value;
  return (
    <section class={parts.panel} aria-label="What would happen" aria-live="polite">
      <h2>What would happen</h2>
      {isRefused ? (
        <p class={parts.quiet}>Change what was refused; the plan appears here then.</p>
      ) : plan.error ? (
        <Incomplete error={plan.error} />
      ) : answer ? (
        <Answer answer={answer} />
      ) : (
        <p class={parts.quiet}>Give it a name and say what to run; the plan appears here while you type.</p>
      )}
    </section>
  );
}

/** What is still missing before there can be a plan, in the server's words. */
function Incomplete({ error }: { error: ApiError }) {
  if (error.issues.length === 0) return <p class={parts.quiet}>There is no plan: {error.message}</p>;
  return (
    <>
      <p class={parts.quiet}>It would be refused now:</p>
      <ul class={css.notes}>
        {error.issues.map((issue) => (
          <li key={issue.field + issue.details}>
            <code>{issue.field.replace(/^spec\./, "")}</code> {issue.details}
          </li>
        ))}
      </ul>
    </>
  );
}

export function Answer({ answer }: { answer: PlanAnswer }) {
  const [tone, title] = TITLES[answer.status];
  const pods = answer.pods ?? [];
  const nodes = [...new Set(pods.map((pod) => pod.node))];
  const evictions = answer.evictions ?? [];
  return (
    <>
      <p class={css.verdict}>
        <Phase phase={tone} label={title} />
      </p>
      <StartTimes p50={answer.timing?.p50} p90={answer.timing?.p90} />
      <p>{withoutTimes(answer.message)}</p>
      {nodes.length > 0 && (
        <p class={parts.quiet}>
          {count(pods.length, "pod")} on {nodes.slice(0, 5).join(", ")}
          {nodes.length > 5 && ` and ${nodes.length - 5} more nodes`}
        </p>
      )}
      {answer.timing && !answer.message.includes(answer.timing.message) && <p>{withoutTimes(answer.timing.message)}</p>}
      <Consequences effects={answer.effects} />
      {evictions.length > 0 && (
        <ul class={css.notes}>
          {evictions.slice(0, 10).map((one, at) => (
            <li key={at}>{one.message}</li>
          ))}
        </ul>
      )}
      {(answer.remarks ?? []).map((remark) => (
        <p key={remark} class={parts.quiet}>
          {remark}
        </p>
      ))}
    </>
  );
}
