import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { devicesOf, groupsOf, rangesOf, roleOf } from "./pods";

test.each([
  ["train-worker-0", "none", "worker 0"],
  ["train-master-0", "none", "master 0"],
  ["train-3-1", "none", "pod 3"],
  ["train-0-1", "groups", "worker 1"],
  ["train-0", "groups", "leader"],
  ["train-00002-1", "revisions", "replica 1"],
  ["other", "none", "other"],
] as const)("the role of %s (%s) is %s", (pod, arrangement, want) => {
  expect(roleOf(pod, "train", arrangement)).toBe(want);
});

test("groups have their leader first", () => {
  const pods = ["llm-1", "llm-0-1", "llm-0", "llm-1-1"].map((name) => ({ name }) as Schemas["PodView"]);
  const names = groupsOf(pods, "llm", "groups").map(([title, inside]) => [title, inside.map((pod) => pod.name)]);
  expect(names).toEqual([
    ["Group 0", ["llm-0", "llm-0-1"]],
    ["Group 1", ["llm-1", "llm-1-1"]],
  ]);
});

test("draws the GPUs of a pod by their numbers, as far as they are known", () => {
  const holding = (gpu: number) => ({ allocatedResources: { gpu } }) as Schemas["PodView"];
  expect(devicesOf({ ...holding(2), gpuDevices: [4, 5] })).toEqual({ devices: ["4", "5"], portion: 1 });
  expect(devicesOf({ ...holding(0.5), gpuDevices: [3] })).toEqual({ devices: ["3"], portion: 0.5 });
  expect(devicesOf({ ...holding(2), gpuDevices: [] })).toEqual({ devices: ["", ""], portion: 1 });
  expect(devicesOf(holding(0))).toEqual({ devices: [], portion: 0 });
});

test("says numbers in few words", () => {
  expect(rangesOf([6, 0, 1, 2, 3])).toBe("0–3, 6");
  expect(rangesOf([7])).toBe("7");
});
