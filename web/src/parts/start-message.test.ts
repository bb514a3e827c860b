import { expect, test } from "vitest";
import { withoutTimes } from "./start-message";

test.each([
  ["Starts about 2026-11-19 01:57:44 UTC, very likely by 2026-11-19 02:02:24 UTC: a ends then; 2 workloads go first.", "a ends then; 2 workloads go first."],
  ["Waiting for 8 GPUs. Starts about 2026-11-19 01:57:44 UTC.", "Waiting for 8 GPUs."],
  ["Starts in the next scheduling cycle.", "Starts in the next scheduling cycle."],
])("%s", (message, want) => {
  expect(withoutTimes(message)).toBe(want);
});
