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
  /** One, or several with commas between them. */
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

function isFound(row: Row, words: string[]): boolean {
  return words.every((word) => row.text.includes(word));
}

/** The rows in the order of a column; equal ones by their id. Apart from the filters, which change with every key. */
export function sortRows(rows: readonly Row[], sort: string): Row[] {
  const sign = sort.startsWith("-") ? -1 : 1;
  const key = sort.replace(/^-/, "") as keyof Row;
  // Comparing small objects of one shape is several times faster than comparing the rows themselves.
  const keyed = rows.map((row) => ({ row, value: row[key], id: row.id }));
  keyed.sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : a.id < b.id ? -1 : 1));
  return keyed.map((one) => one.row);
}

/** The rows that the filters let through, in the order in which they are given. */
export function selectRows(rows: readonly Row[], state: ListState, now = Date.now()): Row[] {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const phases = state.phase.split(",");
  return rows.filter(
    (row) =>
      (!state.phase || phases.includes(row.phase)) &&
      (!state.project || row.project === state.project) &&
      (!state.kind || row.kind === state.kind) &&
      (!state.owner || row.owner === state.owner) &&
      (!state.isTroubled || needsAttention(row, now)) &&
      (words.length === 0 || isFound(row, words)),
  );
}

/** The sort after a click on a column: the other way round if it is sorted by it already. */
export function nextSort(sort: string, key: string): string {
  return sort === key ? `-${key}` : key;
}
