import { expect, it } from "vitest";
import { drawNodes, freeOf, huesOf } from "./devices";

it("shows who holds which device, and how much of it", () => {
  const [node] = drawNodes({
    nodes: [{ name: "n1", gpu: 3 }],
    queues: [{ name: "7", displayName: "team" }],
    jobs: [
      { name: "whole", queue: "7", tasks: [{ status: "Running", node: "n1", devices: [0], gpu: 1 }] },
      { name: "part", queue: "7", tasks: [{ status: "Running", node: "n1", devices: [1], gpuPortion: 0.5 }] },
      { name: "waits", queue: "7", tasks: [{ status: "Pending" }] },
    ],
  });
  expect(node?.devices.map((holders) => holders.map((one) => `${one.project}/${one.workload} ${one.portion}`))).toEqual([
    ["team/whole 1"],
    ["team/part 0.5"],
    [],
  ]);
});

it("counts what is free, whole and in parts, and gives each project a colour", () => {
  const holder = (project: string, portion: number) => ({ workload: "w", project, portion });
  const devices = [[holder("b", 1)], [holder("a", 0.25), holder("b", 0.25)], []];
  expect(freeOf(devices)).toEqual({ whole: 1, left: 0.5 });
  const node = { name: "n", pool: "p", isReady: true, pods: 0, labels: {}, devices };
  expect([...huesOf([node])]).toEqual([["a", 1], ["b", 2]]);
});
