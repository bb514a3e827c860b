import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { gpuFigures, quotaOf, quotaText } from "./quotas";

function owner(shares: { deserved: number | null; limit: number | null }[], used: number, requested: number) {
  const none = { gpu: 0, cpu: 0, memory: 0 };
  return {
    resources: shares.map((gpu) => ({ gpu })),
    status: {
      quotaStatus: {
        allocated: { ...none, gpu: used },
        allocatedNonPreemptible: none,
        requested: { ...none, gpu: requested },
      },
    },
  } as unknown as Schemas["ProjectView"];
}

it("adds up node pools, and counts what is asked for beyond what is used", () => {
  const shares = [
    { deserved: 2, limit: 3 },
    { deserved: 1, limit: 4 },
  ];
  expect(gpuFigures(owner(shares, 5, 7))).toMatchObject({ quota: 3, used: 5, asked: 2, limit: 7 });
});

it("is without bounds if one node pool is", () => {
  const shares = [
    { deserved: -1, limit: null },
    { deserved: 1, limit: 4 },
  ];
  expect(gpuFigures(owner(shares, 0, 0))).toMatchObject({ quota: Infinity, used: 0, asked: 0, limit: undefined });
});

it("knows fair share and loans only from the scheduler", () => {
  const pools = [{ deserved: 2, limit: 3 }];
  expect(gpuFigures(owner(pools, 0, 0))).toMatchObject({ lent: 0, fairShare: undefined });
  const share = { fairShare: 1.5, lent: 0.5 } as Schemas["GpuShareView"];
  expect(gpuFigures(owner(pools, 0, 0), [share, share])).toMatchObject({ lent: 1, fairShare: 3 });
});

it.each([
  ["", -1],
  ["0", 0],
  ["2.5", 2.5],
])("a field with %j is a quota of %d", (text, quota) => {
  expect(quotaOf(text)).toBe(quota);
  expect(quotaText(quota)).toBe(text);
});
