// Which metrics of a workload belong into one chart, and how their values are written.
import type { Schemas } from "../../../api/client";
import { amount } from "../../../parts/texts";

export interface Series {
  type: string;
  title: string;
  unit: (value: number) => string;
  /** Seconds since 1970, and the value. */
  values: [number, number][];
}

export interface Chart {
  title: string;
  series: Series[];
}

const STEPS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value: number): string {
  const step = value > 0 ? Math.min(STEPS.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
  return `${amount(value / 1024 ** step)} ${STEPS[step] ?? ""}`;
}
const percent = (value: number): string => `${amount(value)} %`;
const seconds = (value: number): string => `${amount(value)} s`;

const line = (type: string, title: string, unit: (value: number) => string = amount) => ({ type, title, unit });

export const CHARTS = [
  { title: "GPU utilization", series: [line("GPU_UTILIZATION", "used", percent)] },
  {
    title: "GPU memory",
    series: [line("GPU_MEMORY_USAGE_BYTES", "used", bytes), line("GPU_MEMORY_REQUEST_BYTES", "requested", bytes)],
  },
  { title: "GPUs", series: [line("GPU_ALLOCATION", "held")] },
  {
    title: "CPU cores",
    series: [
      line("CPU_USAGE_CORES", "used"),
      line("CPU_REQUEST_CORES", "requested"),
      line("CPU_LIMIT_CORES", "limit"),
    ],
  },
  {
    title: "Memory",
    series: [
      line("CPU_MEMORY_USAGE_BYTES", "used", bytes),
      line("CPU_MEMORY_REQUEST_BYTES", "requested", bytes),
      line("CPU_MEMORY_LIMIT_BYTES", "limit", bytes),
    ],
  },
  { title: "Pods", series: [line("RUNNING_POD_COUNT", "running"), line("POD_COUNT", "all")] },
  { title: "Time to the first token", series: [line("NIM_TIME_TO_FIRST_TOKEN_SECONDS", "average", seconds)] },
];

/** The charts that have values; a series that was always zero says nothing unless it is the only one. */
export function chartsOf(measurements: Schemas["MeasurementView"][]): Chart[] {
  const byType = new Map(measurements.map((one) => [one.type, one.values]));
  const charts = CHARTS.map(({ title, series }) => ({
    title,
    series: series
      .map((one) => ({ ...one, values: (byType.get(one.type) ?? []).map(pointOf) }))
      .filter((one, at) => one.values.length > 0 && (at === 0 || one.values.some(([, value]) => value > 0))),
  }));
  return charts.filter(({ series }) => series.some((one) => one.values.some(([, value]) => value > 0)));
}

function pointOf({ timestamp, value }: { timestamp?: string | null; value: string }): [number, number] {
  return [Date.parse(timestamp ?? "") / 1000, Number(value)];
}
