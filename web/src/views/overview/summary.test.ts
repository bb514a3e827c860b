import { expect, it } from "vitest";
import type { Row } from "../../store/rows";
import { countByProject, needAttention, sharedByPool } from "./summary";

const NOW = 100 * 86_400_000;

function row(phase: Row["phase"], more: Partial<Row> = {}): Row {
  const name = `${phase}${more.message ?? ""}${more.phaseSince ?? ""}`;
  const usual = { id: name, name, kind: "Training", project: "team", cluster: "c", owner: "ada", gpusAsked: 1, gpusHeld: 0, pool: "" };
  return { ...usual, phase, created: 0, phaseSince: NOW, waitedSeconds: 0, asOf: NOW, message: "", isEvicted: false, text: "", ...more };
}

it("counts what runs and what waits by project, the largest first", () => {
  const rows = [row("Running", { gpusHeld: 2, project: "b" }), row("Pending"), row("Completed", { project: "c" })];
  expect(countByProject(rows)).toEqual([
    { project: "b", running: 1, waiting: 0, gpus: 2, waitsSince: Infinity },
    { project: "team", running: 0, waiting: 1, gpus: 0, waitsSince: NOW },
  ]);
});

it("points to what failed lately, was evicted, can never start, waits for long or is stuck", () => {
  const found = needAttention(
    [
      row("Failed"),
      row("Failed", { phaseSince: NOW - 2 * 86_400_000 }),
      row("Pending", { message: "Can never start: it asks for 9 GPUs" }),
      row("Pending", { phaseSince: NOW - 7 * 3_600_000 }),
      row("Pending", { message: "Waiting for 2 GPUs", isEvicted: true }),
      row("Initializing", { phaseSince: NOW - 3_600_000 }),
      row("Initializing", { phaseSince: NOW - 60_000 }),
      row("Pending"),
      row("Running"),
    ],
    NOW,
  );
  expect(found.map((one) => one.phase)).toEqual(["Failed", "Pending", "Pending", "Initializing", "Pending"]);
});

it("adds up parts of GPUs by pool", () => {
  const rows = [0.25, 0.5, 2].map((gpusHeld) => row("Running", { gpusHeld, pool: "edge" }));
  expect([...sharedByPool(rows)]).toEqual([["edge", 0.75]]);
});
