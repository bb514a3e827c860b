// The metrics of a workload as charts over time. uPlot is loaded with this module, when somebody looks at charts.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { get } from "../../../api/client";
import { useLoad } from "../../../parts/load";
import { css as parts, Empty, now, Problem } from "../../../parts/parts";
import { href, query, setQuery } from "../../../router";
import { type Chart, CHARTS, chartsOf, type Series } from "./charts";
import css from "./metrics.module.css";

const SPANS = [
  ["15", "15 minutes"],
  ["60", "1 hour"],
  ["360", "6 hours"],
  ["1440", "1 day"],
  ["10080", "7 days"],
] as const;
const SAMPLES = 200;
const MINUTE = 60_000;

export function Metrics({ id }: { id: string }) {
  const minutes = Number(query.value.get("span") ?? "60");
  // Every half minute; a chart of a week needs no more.
  const end = Math.floor(now.value / 30_000) * 30_000;
  const { value, error } = useLoad(async (signal) => {
    const span = { start: iso(end - minutes * MINUTE), end: iso(end), numberOfSamples: SAMPLES };
    const types = CHARTS.flatMap((chart) => chart.series.map((one) => one.type));
    // A few at a time: the server answers at most ten types.
    const answers = await Promise.all(
      slices(types, 9).map((some) =>
        get("/api/v1/workloads/{workloadId}/metrics", {
          path: { workloadId: id },
          query: { metricType: some.join(), ...span },
          signal,
        }),
      ),
    );
    return chartsOf(answers.flatMap((answer) => answer.measurements));
  }, `${id} ${minutes} ${end}`);
  return (
    <section aria-label="Metrics">
      <div class={parts.choices} role="group" aria-label="Span of time">
        {SPANS.map(([span, title]) => (
          <button
            key={span}
            type="button"
            aria-pressed={String(minutes) === span}
            onClick={() => setQuery({ span })}
          >
            {title}
          </button>
        ))}
      </div>
      <Problem error={error} />
      {value?.length === 0 && (
        <Empty>
          Nothing was measured in this time. On a cluster, metrics come from Prometheus; see{" "}
          <a href={href("/").replace("/ui/", "/docs/")}>the documentation</a>.
        </Empty>
      )}
      <div class={css.charts}>
        {(value ?? []).map((chart) => (
          <ChartView key={chart.title} chart={chart} from={end - minutes * MINUTE} to={end} />
        ))}
      </div>
    </section>
  );
}

const iso = (at: number): string => new Date(at).toISOString();

function slices<T>(items: readonly T[], size: number): T[][] {
  return items.length === 0 ? [] : [items.slice(0, size), ...slices(items.slice(size), size)];
}

function ChartView({ chart, from, to }: { chart: Chart; from: number; to: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [scheme, setScheme] = useState(0);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const change = (): void => setScheme((last) => last + 1);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const plot = new uPlot(options(chart, element, from, to), data(chart.series), element);
    const sizes = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      plot.destroy();
    };
  }, [chart, from, to, scheme]);
  const last = chart.series.map((one) => `${one.title} ${one.unit(one.values.at(-1)?.[1] ?? 0)}`).join(", ");
  return (
    <figure class={css.chart}>
      <figcaption>
        <strong>{chart.title}</strong> <span class={parts.quiet}>now: {last}</span>
      </figcaption>
      <div ref={box} role="img" aria-label={`${chart.title} over time, now ${last}`} />
    </figure>
  );
}

const HEIGHT = 180;

function options(chart: Chart, element: HTMLElement, from: number, to: number): uPlot.Options {
  const [text, grid] = [colorOf(element, "--text"), colorOf(element, "--chart-grid")];
  const unit = chart.series[0]?.unit ?? String;
  return {
    width: element.clientWidth,
    height: HEIGHT,
    scales: { x: { min: from / 1000, max: to / 1000 }, y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        stroke: text,
        grid: { show: false },
        ticks: { stroke: grid, width: 1, size: 4 },
        size: 30,
        values: clock(from, to),
      },
      {
        stroke: text,
        grid: { stroke: grid, width: 1 },
        ticks: { show: false },
        size: 66,
        // Steps of bytes are powers of two, so that they are round numbers of KiB, MiB and GiB.
        ...(unit(0).endsWith("B") ? { incrs: Array.from({ length: 50 }, (_, power) => 2 ** power) } : {}),
        values: (_plot, splits) => splits.map((split) => unit(split)),
      },
    ],
    series: [
      {},
      ...chart.series.map((one, at): uPlot.Series => ({
        label: one.title,
        stroke: colorOf(element, `--chart-${at}`),
        width: 2,
        // What is used is a filled line; what it is compared with is dashed, so that it is seen where both are equal.
        ...(at === 0 ? { fill: colorOf(element, "--chart-fill") } : { dash: [6, 4] }),
        points: { show: false },
        value: (_plot, value: number | null) => (value === null ? "" : one.unit(value)),
      })),
    ],
  };
}

const DAY = 1440 * MINUTE;

/** Words for points in time: the hour within a day, else the date. */
function clock(from: number, to: number): (plot: uPlot, splits: number[]) => string[] {
  const form: Intl.DateTimeFormatOptions =
    to - from > DAY ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const format = new Intl.DateTimeFormat(undefined, form);
  return (_plot, splits) => splits.map((at) => format.format(at * 1000));
}

/** A colour of the theme, as a canvas takes it. */
function colorOf(element: HTMLElement, name: string): string {
  const probe = element.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** All series on the times of all of them; what was not measured stays open. */
function data(series: Series[]): uPlot.AlignedData {
  const times = [...new Set(series.flatMap((one) => one.values.map(([at]) => at)))].sort((a, b) => a - b);
  const rows = series.map((one) => {
    const known = new Map(one.values);
    return times.map((at) => known.get(at) ?? null);
  });
  return [times, ...rows];
}
