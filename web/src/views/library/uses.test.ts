import { expect, test } from "vitest";
import { countUses, matches } from "./uses";

test("every word must be somewhere", () => {
  const meta = { name: "pytorch-2", createdBy: "ann@lab", description: "for vision" };
  expect(matches(meta, "PYTORCH vision")).toBe(true);
  expect(matches(meta, "pytorch nlp")).toBe(false);
  expect(matches(meta, "")).toBe(true);
});

test("uses by workloads and by templates are added up", () => {
  const using = [{ id: "1", name: "a" }];
  const usage = { trainings: using, workspaces: using, distributed: [], inferences: [], assets: { workloadTemplates: using } };
  expect(countUses(usage as never)).toBe(3);
  expect(countUses(undefined)).toBe(0);
});
