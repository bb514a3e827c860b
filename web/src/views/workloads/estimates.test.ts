import { expect, test } from "vitest";
import type { Row } from "../../store/rows";
import { estimateText, toAsk, toEstimate } from "./estimates";

const NOW = 1_000_000;
const row = (id: string, phase: Row["phase"]): Row => ({ id, phase }) as Row;

test("only rows that wait are asked for, and again after some minutes", () => {
  const known = new Map([
    ["fresh", { at: NOW, message: "", askedAt: NOW - 1000 }],
    ["old", { at: NOW, message: "", askedAt: NOW - 301_000 }],
  ]);
  const rows = [row("fresh", "Pending"), row("old", "Pending"), row("new", "Pending"), row("runs", "Running")];
  expect(toAsk(rows, known, NOW).map((one) => one.id)).toEqual(["old", "new"]);
});

test.each([
  [NOW / 1000 + 300, "in 5 min"],
  [NOW / 1000 - 1, "soon"],
  [null, "unknown"],
])("a start at %s is told as %s", (p50, want) => {
  const answer = { workload: "", project: "", status: "estimated" as const, message: "", p50, now: 0 };
  expect(estimateText(toEstimate(answer, NOW), NOW)).toBe(want);
});
