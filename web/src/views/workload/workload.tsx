// One workload: its state, why it waits, its pods, logs, events and spec, each part with an address of its own.
import { useState } from "preact/hooks";
import { type ApiError, get, type Schemas } from "../../api/client";
import { findKind, titleOf, type Verb } from "../../api/kinds";
import { later } from "../../parts/later";
import { useCurrentInSight } from "../../parts/in-sight";
import { useLoad } from "../../parts/load";
import { css as parts, Phase, Problem, Time, ViewTitle } from "../../parts/parts";
import { amount, countGpus, span } from "../../parts/texts";
import { href, path } from "../../router";
import { isWaiting, type Row, toRow } from "../../store/rows";
import { findRow } from "../../store/workloads";
import { Action, applicable } from "../workloads/actions";
import { Change } from "./change";
import { Events, Pods, Spec, Timeline } from "./details";
import { Logs } from "./logs";
import { Revisions } from "./service";
import { Why } from "./why";
import css from "./workload.module.css";

const TABS = [
  ["", "Summary"],
  ["logs", "Logs"],
  ["terminal", "Terminal"],
  ["metrics", "Metrics"],
  ["events", "Events"],
  ["spec", "Spec"],
] as const;
const TerminalView = later(async () => (await import("./terminal/terminal")).TerminalView);
const Metrics = later(async () => (await import("./metrics/metrics")).Metrics);
const VERBS: [Verb, string][] = [
  ["suspend", "Suspend"],
  ["resume", "Resume"],
  ["delete", "Delete"],
];

export function WorkloadView() {
  const [, , id = "", tab = ""] = path.value.split("/");
  // What was loaded for another workload is not shown for this one.
  return <OneWorkload key={id} id={id} tab={tab} />;
}

function OneWorkload({ id, tab }: { id: string; tab: string }) {
  const row = findRow(id);
  // Everything is loaded again when the feed tells of a change.
  const version = row ? `${row.phase} ${row.phaseSince} ${row.message} ${row.gpusHeld}` : "";
  const { value, error } = useLoad(
    (signal) => get("/api/v1/workloads/{workloadId}", { path: { workloadId: id }, signal }),
    id + version,
  );
  const pods = useLoad(
    (signal) =>
      get("/api/v1/workloads/{workloadId}/pods", { path: { workloadId: id }, query: { limit: 500 }, signal }),
    id + version,
  );
  if (!value) return <div class={parts.page}>{error ? <Missing error={error} /> : <p>Loading…</p>}</div>;
  const current = row ?? toRow(value);
  const kind = findKind(current.kind);
  return (
    <div class={parts.page}>
      <Head view={value} row={current} />
      <Tabs id={id} tab={tab} />
      {tab === "" && isWaiting(current) && <Why id={id} version={version} said={current.message} />}
      {tab === "" && kind?.hasRevisions && <Revisions id={id} version={version} />}
      {tab === "" && (
        <div class={css.columns}>
          <Pods
            key={pods.value ? id : ""}
            pods={pods.value?.pods ?? []}
            workload={current.name}
            arrangement={kind?.arrangement ?? "none"}
          />
          <Timeline id={id} version={version} />
        </div>
      )}
      {tab === "logs" && <Logs id={id} pods={pods.value?.pods ?? []} isWaiting={isWaiting(current)} />}
      {tab === "terminal" && <TerminalView id={id} pods={pods.value?.pods ?? []} />}
      {tab === "metrics" && <Metrics id={id} />}
      {tab === "events" && <Events id={id} version={version} />}
      {tab === "spec" && <Spec id={id} hasYaml={kind?.hasYaml ?? true} />}
    </div>
  );
}

function Missing({ error }: { error: ApiError }) {
  return (
    <>
      <ViewTitle>Workload</ViewTitle>
      <Problem error={error} />
      <p>
        <a href={href("/workloads")}>All workloads</a>
      </p>
    </>
  );
}

function Tabs({ id, tab }: { id: string; tab: string }) {
  const line = useCurrentInSight();
  return (
    <nav ref={line} class={css.tabs} aria-label="Parts of the workload">
      {TABS.map(([name, title]) => (
        <a
          key={name}
          href={href(`/workloads/${id}${name && `/${name}`}`)}
          aria-current={tab === name ? "page" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

function Head({ view, row }: { view: Schemas["WorkloadDetailedView"]; row: Row }) {
  const [verb, setVerb] = useState<Verb>();
  const [isChanging, setChanging] = useState(false);
  const kind = findKind(row.kind);
  const isDeleted = view.deletedAt !== null;
  return (
    <header>
      <div class={css.head}>
        <ViewTitle>{row.name}</ViewTitle>
        <Phase phase={isDeleted ? "Deleted" : row.phase} />
        <div class={css.verbs}>
        {!isDeleted &&
          kind && (
            <a class={parts.button} href={href(`/submit?from=${row.id}`)}>
              Clone
            </a>
          )}
        {!isDeleted && kind && kind.canChange.length > 0 && (
          <button type="button" onClick={() => setChanging(true)}>
            Change
          </button>
        )}
        {!isDeleted &&
          VERBS.filter(([name]) => applicable([row], name).length > 0).map(([name, title]) => (
            <button key={name} type="button" onClick={() => setVerb(name)}>
              {title}
            </button>
          ))}
        </div>
      </div>
      <p>{row.message}</p>
      <p class={css.facts}>
        {titleOf(row.kind)} of {row.owner} in {row.project} · submitted <Time at={row.created} /> · waited{" "}
        {span(view.totalPendingTimeSeconds ?? 0)}, ran {span(view.totalRunningTimeSeconds ?? 0)} ·{" "}
        {amount(row.gpusHeld)} of {countGpus(row.gpusAsked)}
      </p>
      {(view.urls ?? []).length > 0 && (
        <p class={css.facts}>
          {view.urls?.length === 1 ? "URL" : "URLs"}:{" "}
          {(view.urls ?? []).map((url) => (
            <a key={url} href={url} target="_blank" rel="noreferrer noopener">
              {url}
            </a>
          ))}
        </p>
      )}
      {isChanging && kind && <Change id={row.id} kind={kind} onClose={() => setChanging(false)} />}
      {verb && <Action rows={[row]} verb={verb} onClose={() => setVerb(undefined)} />}
    </header>
  );
}
