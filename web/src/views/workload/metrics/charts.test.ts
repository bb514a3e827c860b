import { expect, test } from "vitest";
import { bytes, chartsOf } from "./charts";

test.each([
  [0, "0 B"],
  [512, "512 B"],
  [1536, "1.5 KiB"],
  [3 * 1024 ** 3, "3 GiB"],
])("%d bytes are %s", (value, want) => {
  expect(bytes(value)).toBe(want);
});

test("charts without values are left out, and series that are always zero", () => {
  const point = (value: string) => ({ value, timestamp: "1970-01-01T00:01:00Z" });
  const charts = chartsOf([
    { type: "CPU_USAGE_CORES", values: [point("0.5")] },
    { type: "CPU_LIMIT_CORES", values: [point("0")] },
    { type: "GPU_UTILIZATION", values: [] },
    { type: "GPU_ALLOCATION", values: [point("0")] },
  ]);
  expect(charts.map((chart) => [chart.title, chart.series.map((one) => [one.title, one.values])])).toEqual([
    ["CPU cores", [["used", [[60, 0.5]]]]],
  ]);
});
