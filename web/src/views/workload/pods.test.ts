import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { groupsOf, roleOf } from "./pods";

test.each([
  ["train-worker-0", "worker 0"],
  ["train-master-0", "master 0"],
  ["train-0-1", "worker 1"],
  ["train-3", "pod 3"],
  ["other", "other"],
])("the role of %s is %s", (pod, want) => {
  expect(roleOf(pod, "train")).toBe(want);
});

test("groups have their leader first", () => {
  const pods = ["llm-1", "llm-0-1", "llm-0", "llm-1-1"].map((name) => ({ name }) as Schemas["PodView"]);
  const names = groupsOf(pods, "llm").map(([title, inside]) => [title, inside.map((pod) => pod.name)]);
  expect(names).toEqual([
    ["Group 0", ["llm-0", "llm-0-1"]],
    ["Group 1", ["llm-1", "llm-1-1"]],
  ]);
});
