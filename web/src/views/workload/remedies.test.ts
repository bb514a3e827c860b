import { describe, expect, it } from "vitest";
import { remedyOf, settingsText } from "./remedies";

type Verified = Parameters<typeof remedyOf>[0];

function verified(changes: Verified["changes"], more: Partial<Verified> = {}): Verified {
  const effects = { evicted: {}, moved: {}, delayed: {} };
  const rest = { family: "x", message: "x", method: "fewest", size: 1, cycle: 1, pods: 1, nodes: [], effects } as const;
  return { by: "user", ...rest, changes: changes ?? [], ...more } as Verified;
}

describe("a remedy", () => {
  it("suspends the workloads that are in the way", () => {
    const change = verified([{ change: "removeWorkload", workload: "team/a" }]);
    expect(remedyOf(change)).toEqual({ kind: "suspend", workloads: ["team/a"] });
  });
  it("does not exist if some of them are hidden, or if only time helps", () => {
    const removal = { change: "removeWorkload", workload: "team/a" } as const;
    expect(remedyOf(verified([removal], { ends: { hidden: 1 } }))).toBeUndefined();
    expect(remedyOf(verified([removal], { by: "time" }))).toBeUndefined();
    expect(remedyOf(verified([{ change: "addNodes", like: "n", count: 1 }]))).toBeUndefined();
  });
  it("sets values of the spec in the units of the form", () => {
    const change = verified([
      { change: "request", workload: "team/a", amount: "memoryBytes", value: 2 ** 31 },
      { change: "priority", workload: "team/a", value: 125 },
    ]);
    expect(remedyOf(change)).toEqual({
      kind: "spec",
      settings: [
        { path: "compute.cpuMemoryRequest", value: "2Gi" },
        { path: "priorityClass", value: "high" },
      ],
    });
  });
  it("is an address", () => {
    expect(settingsText([{ path: "nodePools", value: ["a"] }])).toBe("set=nodePools%3D%5B%22a%22%5D");
  });
});
