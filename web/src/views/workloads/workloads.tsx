// All workloads of every kind in one list, live, with filters in the URL.
import { signal, useSignal } from "@preact/signals";
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { titleOf, type Verb } from "../../api/kinds";
import { isTyping } from "../../keys";
import { css as parts, Empty, now, Phase, Time, ViewTitle } from "../../parts/parts";
import { amount, count, span } from "../../parts/texts";
import { useVisible } from "../../parts/window";
import { go, href, query, setQuery } from "../../router";
import { isWaiting, type Row } from "../../store/rows";
import { hasLoaded, rows } from "../../store/workloads";
import { Action, applicable } from "./actions";
import { type Estimate, estimates, estimateText, useEstimates } from "./estimates";
import { COLUMNS, nextSort, readState, selectRows, sortRows } from "./list";
import css from "./workloads.module.css";

/** The height of a row in pixels by the width of the window: in narrow windows it has two lines or four. */
const HEIGHTS = [
  [matchMedia("(max-width: 48rem)"), 88],
  [matchMedia("(max-width: 85rem)"), 56],
] as const;
const heightNow = (): number => HEIGHTS.find(([window]) => window.matches)?.[1] ?? 34;
const rowHeight = signal(heightNow());
for (const [window] of HEIGHTS) window.addEventListener("change", () => (rowHeight.value = heightNow()));
/** More rows than any window shows at once. */
const SLOTS = 256;
const NO_FILTERS = { q: "", phase: "", kind: "", project: "", owner: "", attention: "" };
const VERBS: [Verb, string][] = [
  ["suspend", "Suspend"],
  ["resume", "Resume"],
  ["delete", "Delete"],
];

export function Workloads() {
  const state = readState(query.value);
  const all = rows.value;
  const key = JSON.stringify(state);
  const sorted = useMemo(() => sortRows(all, state.sort), [all, state.sort]);
  const shown = useMemo(() => selectRows(sorted, state), [sorted, key]);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [verb, setVerb] = useState<Verb>();
  const chosen = picked.size > 0 ? shown.filter((row) => picked.has(row.id)) : [];
  const toggle = useCallback(
    (id: string): void => setPicked((last) => new Set(last.has(id) ? without(last, id) : [...last, id])),
    [],
  );
  return (
    <div class={css.page}>
      <div class={css.head}>
        <ViewTitle>Workloads</ViewTitle>
        <a class={parts.button} data-main href={href("/submit")}>
          Submit a workload
        </a>
      </div>
      <div class={css.tools}>
        <Filters all={all} />
        <span class={css.count} role="status">
          {shown.length === all.length ? count(all.length, "workload") : `${shown.length} of ${all.length} workloads`}
        </span>
        {chosen.length > 0 &&
          VERBS.map(([name, title]) => {
            const able = applicable(chosen, name).length;
            return (
              <button key={name} type="button" disabled={able === 0} onClick={() => setVerb(name)}>
                {title} {able}
              </button>
            );
          })}
      </div>
      {shown.length === 0 ? (
        <Nothing isFiltered={all.length > 0} />
      ) : (
        <List shown={shown} sort={state.sort} picked={picked} toggle={toggle} setPicked={setPicked} />
      )}
      {verb && (
        <Action
          rows={applicable(chosen, verb)}
          verb={verb}
          onClose={() => {
            setVerb(undefined);
            setPicked(new Set());
          }}
        />
      )}
    </div>
  );
}

function without(ids: ReadonlySet<string>, id: string): string[] {
  return [...ids].filter((one) => one !== id);
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (!hasLoaded.value) return <Empty>Loading the workloads…</Empty>;
  if (isFiltered) {
    return (
      <Empty>
        No workload matches the filters.{" "}
        <button type="button" onClick={() => setQuery(NO_FILTERS)}>
          Clear the filters
        </button>
      </Empty>
    );
  }
  return <Empty command="fairlead run -- python3 train.py">There are no workloads yet. Run one:</Empty>;
}

function valuesOf(all: Row[], pick: (row: Row) => string): string[] {
  return [...new Set(all.map(pick))].sort();
}

interface Filter {
  name: "phase" | "kind" | "project" | "owner";
  title: string;
  every: string;
}

const FILTERS: readonly Filter[] = [
  { name: "phase", title: "Status", every: "Every status" },
  { name: "kind", title: "Kind", every: "Every kind" },
  { name: "project", title: "Project", every: "Every project" },
  { name: "owner", title: "Owner", every: "Every owner" },
];

function Filters({ all }: { all: Row[] }) {
  const state = readState(query.value);
  return (
    <>
      <input
        type="search"
        aria-label="Search workloads"
        placeholder="Search (press /)"
        value={state.search}
        onInput={(event) => setQuery({ q: event.currentTarget.value })}
      />
      {FILTERS.map((filter) => (
        <FilterChoice key={filter.name} filter={filter} all={all} chosen={state[filter.name]} />
      ))}
      {state.isTroubled && (
        <button type="button" onClick={() => setQuery({ attention: "" })}>
          Only those that need attention ×
        </button>
      )}
    </>
  );
}

function FilterChoice({ filter, all, chosen }: { filter: Filter; all: Row[]; chosen: string }) {
  const values = useMemo(() => valuesOf(all, (row) => row[filter.name]), [all, filter]);
  const options = useMemo(
    () =>
      [...new Set(chosen ? [...values, chosen] : values)].map((value) => (
        <option key={value} value={value}>
          {filter.name === "kind" ? titleOf(value) : value.replaceAll(",", ", ")}
        </option>
      )),
    [values, chosen],
  );
  return (
    <select
      aria-label={filter.title}
      value={chosen}
      onChange={(event) => setQuery({ [filter.name]: event.currentTarget.value })}
    >
      <option value="">{filter.every}</option>
      {options}
    </select>
  );
}

interface ListProps {
  shown: Row[];
  sort: string;
  picked: ReadonlySet<string>;
  toggle: (id: string) => void;
  setPicked: (ids: ReadonlySet<string>) => void;
}

function List({ shown, sort, picked, toggle, setPicked }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const height = rowHeight.value;
  const { first, last } = useVisible(box, height, shown.length);
  const cursor = useCursor(shown, box, toggle);
  useEstimates(shown.slice(first, last));
  const areAllPicked = picked.size >= shown.length && shown.every((row) => picked.has(row.id));
  return (
    <div class={css.box} ref={box} tabIndex={0} role="region" aria-label="List of workloads">
      {/* The roles are said because rows of several lines are no longer laid out as a table. */}
      <table class={css.table} role="table" aria-rowcount={shown.length + 1} style={{ "--row": `${height}px` }}>
        <thead role="rowgroup">
          <tr role="row">
            <th class={css.pick} role="columnheader" scope="col">
              <input
                type="checkbox"
                aria-label="Select all"
                checked={areAllPicked}
                onChange={() => setPicked(new Set(areAllPicked ? [] : shown.map((row) => row.id)))}
              />
            </th>
            {COLUMNS.map((column) => (
              <th
                key={column.key}
                data-key={column.key}
                data-number={column.isNumber}
                role="columnheader"
                scope="col"
                aria-sort={direction(sort, column.key)}
              >
                {column.isAsked ? (
                  <span title="The scheduler's estimate">{column.title}</span>
                ) : (
                  <button type="button" onClick={() => setQuery({ sort: nextSort(sort, column.key) })}>
                    {column.title}
                    {arrow(sort, column.key)}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          <tr aria-hidden="true" style={{ height: `${first * height}px` }} />
          {shown.slice(first, last).map((row, at) => (
            <Line
              // A row that scrolls out of sight lends its elements to one that comes in: making new ones is what takes time.
              key={(first + at) % SLOTS}
              row={row}
              index={first + at}
              isCursor={first + at === cursor}
              isPicked={picked.has(row.id)}
              toggle={toggle}
            />
          ))}
          <tr aria-hidden="true" style={{ height: `${(shown.length - last) * height}px` }} />
        </tbody>
      </table>
    </div>
  );
}

function direction(sort: string, key: string): "ascending" | "descending" | undefined {
  return sort === key ? "ascending" : sort === `-${key}` ? "descending" : undefined;
}

function arrow(sort: string, key: string): string {
  return sort === key ? " ↑" : sort === `-${key}` ? " ↓" : "";
}

interface LineProps {
  row: Row;
  index: number;
  isCursor: boolean;
  isPicked: boolean;
  toggle: (id: string) => void;
}

/** Drawn again only if something in it has changed: a key in the search or a step of the cursor concerns few rows. */
function Line(props: LineProps) {
  const { row, index, isCursor, isPicked, toggle } = props;
  const estimate = isWaiting(row) ? estimates.value.get(row.id) : undefined;
  return useMemo(() => <Cells {...props} estimate={estimate} />, [row, index, isCursor, isPicked, toggle, estimate]);
}

function Cells({ row, index, isCursor, isPicked, toggle, estimate }: LineProps & { estimate: Estimate | undefined }) {
  const waited = row.waitedSeconds + (isWaiting(row) ? Math.max(0, (now.value - row.asOf) / 1000) : 0);
  const gpus = row.gpusHeld === row.gpusAsked ? amount(row.gpusAsked) : `${amount(row.gpusHeld)}/${amount(row.gpusAsked)}`;
  return (
    <tr class={css.row} role="row" aria-rowindex={index + 2} data-cursor={isCursor || undefined} data-picked={isPicked || undefined}>
      <td role="cell" class={css.pick}>
        <input
          type="checkbox"
          aria-label={`Select ${row.name}`}
          checked={isPicked}
          onChange={() => toggle(row.id)}
        />
      </td>
      <td role="cell" data-key="name" title={row.name}>
        <a href={href(`/workloads/${row.id}`)}>{row.name}</a>
      </td>
      <td role="cell" data-key="kind" title={titleOf(row.kind)}>{titleOf(row.kind)}</td>
      <td role="cell" data-key="phase">
        <Phase phase={row.phase} />
      </td>
      <td role="cell" data-key="project">{row.project}</td>
      <td role="cell" data-key="owner">{row.owner}</td>
      <td role="cell" data-key="gpusAsked" data-number title="GPUs held of those asked for">
        {gpus}
      </td>
      <td role="cell" data-key="created" data-number>
        <Time at={row.created} isAge />
      </td>
      <td role="cell" data-key="waitedSeconds" data-number data-none={waited < 1 || undefined}>
        {waited < 1 ? "–" : span(waited)}
      </td>
      <td role="cell" data-key="estimate" data-number title={estimate?.message}>
        {estimate ? estimateText(estimate, now.value) : ""}
      </td>
      <td role="cell" data-key="message" class={parts.quiet} title={row.message}>
        {row.message}
      </td>
    </tr>
  );
}

/** The row that the keys j and k move to, Enter opens and x selects; -1 before the first of them. */
function useCursor(shown: Row[], box: { current: HTMLElement | null }, toggle: (id: string) => void): number {
  // Keys may come faster than the page is drawn, so the handler reads where the cursor is, not where it was drawn.
  const cursor = useSignal(-1);
  const latest = useRef({ shown, toggle });
  latest.current = { shown, toggle };
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event)) return;
      const { shown, toggle } = latest.current;
      const row = shown[cursor.value];
      const step = { j: 1, k: -1 }[event.key] ?? 0;
      if (step) {
        cursor.value = Math.max(0, Math.min(shown.length - 1, cursor.value + step));
        reveal(box.current, cursor.value);
      } else if (row && event.key === "x") toggle(row.id);
      else if (row && event.key === "Enter" && !isControl(event.target)) go(`/workloads/${row.id}`);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return Math.min(cursor.value, shown.length - 1);
}

function reveal(box: HTMLElement | null, index: number): void {
  if (!box) return;
  const [top, bottom] = [index * rowHeight.value, (index + 2) * rowHeight.value];
  if (top < box.scrollTop) box.scrollTop = top;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a, button, input") !== null;
}
