// When the workloads that are in sight and wait would start. Each estimate is a small simulation on the server, so they are
// asked for one after the other, only for the first rows in sight, and kept for some minutes.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { span } from "../../parts/texts";
import { isWaiting, type Row } from "../../store/rows";

export interface Estimate {
  /** Milliseconds since 1970; undefined if nobody can tell. */
  at: number | undefined;
  message: string;
  askedAt: number;
}

const KEPT_MS = 300_000;
/** An open page must cost the server next to nothing. */
const MOST = 12;
/** A list that scrolls asks for nothing. */
const PAUSE_MS = 600;

export const estimates = signal<ReadonlyMap<string, Estimate>>(new Map());

export function toEstimate(answer: Schemas["EstimateAnswer"], now: number): Estimate {
  const at = answer.p50 === null || answer.p50 === undefined ? undefined : answer.p50 * 1000;
  return { at, message: answer.message, askedAt: now };
}

export function estimateText(estimate: Estimate, now: number): string {
  if (estimate.at === undefined) return "unknown";
  return estimate.at <= now ? "soon" : `in ${span((estimate.at - now) / 1000)}`;
}

/** The rows whose estimate is missing or old. */
export function toAsk(rows: readonly Row[], known: ReadonlyMap<string, Estimate>, now: number): Row[] {
  const waiting = rows.filter(isWaiting).slice(0, MOST);
  return waiting.filter((row) => now - (known.get(row.id)?.askedAt ?? -Infinity) > KEPT_MS);
}

export function useEstimates(rows: readonly Row[]): void {
  const latest = useRef(rows);
  latest.current = rows;
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const look = async (): Promise<void> => {
      for (const row of toAsk(latest.current, estimates.value, Date.now())) {
        if (stop.signal.aborted || document.hidden) break;
        await ask(row.id, stop.signal);
      }
      if (!stop.signal.aborted) timer = window.setTimeout(() => void look(), PAUSE_MS);
    };
    timer = window.setTimeout(() => void look(), PAUSE_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, []);
}

async function ask(workloadId: string, signal: AbortSignal): Promise<void> {
  try {
    const answer = await get("/api/v1/workloads/{workloadId}/estimate", { path: { workloadId }, signal });
    keep(workloadId, toEstimate(answer, Date.now()));
  } catch (error) {
    // It is a hint: without it the reason beside it still says what it waits for.
    const message = error instanceof Error ? error.message : String(error);
    if (!signal.aborted) keep(workloadId, { at: undefined, message, askedAt: Date.now() });
  }
}

function keep(id: string, estimate: Estimate): void {
  const fresh = [...estimates.value].filter(([, one]) => estimate.askedAt - one.askedAt < 2 * KEPT_MS);
  estimates.value = new Map([...fresh, [id, estimate]]);
}
