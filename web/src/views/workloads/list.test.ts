import { describe, expect, it } from "vitest";
import type { Row } from "../../store/rows";
import { nextSort, readState, selectRows, sortRows } from "./list";

function row(name: string, more: Partial<Row> = {}): Row {
  return {
    id: name,
    name,
    kind: "Training",
    phase: "Running",
    project: "team",
    cluster: "c",
    owner: "ada",
    gpusAsked: 1,
    gpusHeld: 1,
    pool: "default",
    created: 0,
    phaseSince: 0,
    waitedSeconds: 0,
    asOf: 0,
    message: "",
    isEvicted: false,
    text: `${name} ${more.owner ?? ""}`,
    ...more,
  };
}

function names(query: string, ...rows: Row[]): string[] {
  const state = readState(new URLSearchParams(query));
  return selectRows(sortRows(rows, state.sort), state).map((one) => one.name);
}

describe("the list", () => {
  it("shows the newest first", () => {
    expect(names("", row("old", { created: 1 }), row("new", { created: 2 }))).toEqual(["new", "old"]);
  });
  it("finds every word somewhere", () => {
    const rows = [row("train-a", { owner: "ada" }), row("train-b", { owner: "bob" }), row("serve")];
    expect(names("q=TRAIN+bob", ...rows)).toEqual(["train-b"]);
  });
  it("filters by status and project", () => {
    const rows = [row("a", { phase: "Failed" }), row("b", { phase: "Failed", project: "other" }), row("c")];
    expect(names("phase=Failed&project=other", ...rows)).toEqual(["b"]);
  });
  it("finds several statuses at once", () => {
    const rows = [row("a", { phase: "Pending" }), row("b", { phase: "Creating" }), row("c")];
    expect(names("phase=Creating,Pending", ...rows)).toEqual(["a", "b"]);
  });
  it("sorts numbers as numbers, and both ways", () => {
    const rows = [row("ten", { gpusAsked: 10 }), row("nine", { gpusAsked: 9 })];
    expect(names("sort=gpusAsked", ...rows)).toEqual(["nine", "ten"]);
    expect(names(`sort=${nextSort("gpusAsked", "gpusAsked")}`, ...rows)).toEqual(["ten", "nine"]);
  });
  it("sorts texts both ways, and equal ones by their id", () => {
    const rows = [row("c", { project: "b" }), row("b", { project: "a" }), row("a", { project: "b" })];
    expect(names("sort=project", ...rows)).toEqual(["b", "a", "c"]);
    expect(names("sort=-project", ...rows)).toEqual(["a", "c", "b"]);
  });
});
