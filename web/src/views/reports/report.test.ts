import { expect, test } from "vitest";
import { asCsv, poolsOf, sortRows, type UsageRow } from "./report";

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

test("the days of a pool are added up; pools without GPUs are left out", () => {
  const pool = (nodePool: string, day: string, used: number, capacity: number) =>
    ({ nodePool, day, used: { gpuHours: used }, capacity: { gpuHours: capacity } }) as Parameters<typeof poolsOf>[0][number];
  const [only, ...others] = poolsOf([pool("a", "2026-01-02", 3, 24), pool("a", "2026-01-01", 1, 24), pool("b", "2026-01-01", 0, 0)]);
  expect([only?.name, only?.used, only?.capacity, only?.days.map((one) => one.day)]).toEqual([
    "a",
    4,
    48,
    ["2026-01-01", "2026-01-02"],
  ]);
  expect(others).toEqual([]);
});
