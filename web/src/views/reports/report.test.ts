import { expect, test } from "vitest";
import { asCsv, sortRows, type UsageRow } from "./report";

const row = (project: string, gpuHours: number): UsageRow => ({
  project,
  used: { gpuHours },
  withinQuota: { gpuHours },
  borrowed: {},
  waited: {},
  waitedHours: 0.5,
});

test("who used most comes first", () => {
  expect(sortRows([row("a", 1), row("b", 3)], "project").map((one) => one.project)).toEqual(["b", "a"]);
});

test("names cannot break out of a CSV file, nor become formulas", () => {
  const [, first, second] = asCsv([row('x,"y"', 1), row("=cmd()", 2)], "project").split("\r\n");
  expect(first).toBe('"x,""y""",1,1,0,0,0,0,0.5');
  expect(second).toBe("'=cmd(),2,2,0,0,0,0,0.5");
});
