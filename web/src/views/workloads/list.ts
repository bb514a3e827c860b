// Filtering and sorting of the list, as the URL has them.
import type { Row } from "../../store/rows";
import { needsAttention } from "../overview/summary";

export interface Column {
  key: keyof Row | "estimate";
  title: string;
  isNumber?: boolean;
  /** Known for a few rows only, so the list cannot be sorted by it. */
  isAsked?: boolean;
}

export const COLUMNS: readonly Column[] = [
  { key: "name", title: "Name" },
  { key: "kind", title: "Kind" },
  { key: "phase", title: "Status" },
  { key: "project", title: "Project" },
  { key: "owner", title: "Owner" },
  { key: "gpusAsked", title: "GPUs", isNumber: true },
  { key: "created", title: "Age", isNumber: true },
  { key: "waitedSeconds", title: "Waited", isNumber: true },
  { key: "estimate", title: "Starts", isNumber: true, isAsked: true },
  { key: "message", title: "Reason" },
];

export interface ListState {
  search: string;
  phase: string;
  project: string;
  kind: string;
  owner: string;
  /** Only those that need attention. */
  isTroubled: boolean;
  /** A column, with a minus in front for descending. */
  sort: string;
}

export function readState(query: URLSearchParams): ListState {
  const part = (name: string): string => query.get(name) ?? "";
  return {
    search: part("q"),
    phase: part("phase"),
    project: part("project"),
    kind: part("kind"),
    owner: part("owner"),
    isTroubled: part("attention") !== "",
    sort: part("sort") || "-created",
  };
}

/** What a search looks into, kept for as long as the row does not change. */
const texts = new WeakMap<Row, string>();

function textOf(row: Row): string {
  const known = texts.get(row);
  if (known !== undefined) return known;
  const text = `${row.name} ${row.kind} ${row.phase} ${row.project} ${row.owner} ${row.message}`.toLowerCase();
  texts.set(row, text);
  return text;
}

function isFound(row: Row, words: string[]): boolean {
  const text = textOf(row);
  return words.every((word) => text.includes(word));
}

export function selectRows(rows: readonly Row[], state: ListState, now = Date.now()): Row[] {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter(
    (row) =>
      (!state.phase || row.phase === state.phase) &&
      (!state.project || row.project === state.project) &&
      (!state.kind || row.kind === state.kind) &&
      (!state.owner || row.owner === state.owner) &&
      (!state.isTroubled || needsAttention(row, now)) &&
      (words.length === 0 || isFound(row, words)),
  );
  const sign = state.sort.startsWith("-") ? -1 : 1;
  const key = state.sort.replace(/^-/, "") as keyof Row;
  return found.sort((a, b) => sign * compare(a[key], b[key]) || compare(a.id, b.id));
}

function compare(a: string | number | undefined, b: string | number | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [left, right] = [String(a ?? ""), String(b ?? "")];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The sort after a click on a column: the other way round if it is sorted by it already. */
export function nextSort(sort: string, key: string): string {
  return sort === key ? `-${key}` : key;
}
