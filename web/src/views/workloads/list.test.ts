import { describe, expect, it } from "vitest";
import type { Row } from "../../store/rows";
import { nextSort, readState, selectRows } from "./list";

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
    created: 0,
    phaseSince: 0,
    waitedSeconds: 0,
    asOf: 0,
    message: "",
    ...more,
  };
}

const names = (query: string, ...rows: Row[]): string[] =>
  selectRows(rows, readState(new URLSearchParams(query))).map((one) => one.name);

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
  it("sorts numbers as numbers, and both ways", () => {
    const rows = [row("ten", { gpusAsked: 10 }), row("nine", { gpusAsked: 9 })];
    expect(names("sort=gpusAsked", ...rows)).toEqual(["nine", "ten"]);
    expect(names(`sort=${nextSort("gpusAsked", "gpusAsked")}`, ...rows)).toEqual(["ten", "nine"]);
  });
});
