// A pod's log: follows it, searches in it, downloads it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, send, urlOf } from "../../api/client";
import { asApiError } from "../../parts/load";
import { css as parts, Empty, Problem } from "../../parts/parts";
import { count } from "../../parts/texts";
import { useVisible } from "../../parts/window";
import { parseLine, plainText } from "./ansi";
import { LogLines, LogSearch } from "./log-lines";
import { isWorthReading, type Pod, sourcesOf } from "./log-sources";
import css from "./workload.module.css";

const LINE_HEIGHT = 20;
const PATH = "/api/v1/workloads/{workloadId}/logs";
const REFRESH_MS = 100;
/** Lines: some milliseconds. */
const SEARCHED_AT_ONCE = 5000;

interface LogState {
  version: number;
  isLive: boolean;
  error?: ApiError;
}

/** Reads again, from the beginning, when there is another run to read after the end, or another chance after an error. */
function useLog(id: string, query: Record<string, string | boolean | undefined>, pods: Pod[]): [LogLines, LogState] {
  const [round, setRound] = useState(0);
  const key = JSON.stringify([id, query, round]);
  const sources = sourcesOf(pods);
  const read = useRef(sources);
  const log = useMemo(() => new LogLines(), [key]);
  const [state, setState] = useState<LogState>({ version: 0, isLive: true });
  useEffect(() => {
    if (!state.isLive && isWorthReading(read.current, sources, state.error !== undefined)) setRound(round + 1);
  }, [state.isLive, sources.runs, sources.phases]);
  useEffect(() => {
    read.current = sources;
    const stop = new AbortController();
    let isDirty = true;
    const draw = setInterval(() => {
      if (isDirty) setState((last) => ({ ...last, version: last.version + 1 }));
      isDirty = false;
    }, REFRESH_MS);
    const follow = async (): Promise<void> => {
      setState({ version: 0, isLive: true });
      const response = await send("GET", PATH, { path: { workloadId: id }, query, signal: stop.signal });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const piece = await reader?.read();
        if (!piece || piece.done) break;
        log.push(piece.value);
        isDirty = true;
      }
    };
    follow()
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setState((last) => ({ ...last, error: asApiError(error) }));
      })
      .finally(() => {
        log.end();
        if (!stop.signal.aborted) setState((last) => ({ ...last, version: last.version + 1, isLive: false }));
      });
    return () => {
      stop.abort();
      clearInterval(draw);
    };
  }, [key]);
  return [log, state];
}

/** The lines that have the text, growing while they are looked for, and how often they have grown. */
function useFound(log: LogLines, wanted: string, version: number): [string[] | undefined, number] {
  const search = useMemo(() => (wanted ? new LogSearch(log, wanted, plainText) : undefined), [log, wanted]);
  const [drawn, setDrawn] = useState(0);
  useEffect(() => {
    if (!search) return;
    let timer = 0;
    const look = (): void => {
      const hasMore = search.advance(SEARCHED_AT_ONCE);
      setDrawn((last) => last + 1);
      if (hasMore) timer = window.setTimeout(look);
    };
    look();
    return () => clearTimeout(timer);
  }, [search, version]);
  return [search?.found, drawn];
}

export function Logs({ id, pods, isWaiting }: { id: string; pods: Pod[]; isWaiting: boolean }) {
  const [pod, setPod] = useState("");
  const [isPrevious, setPrevious] = useState(false);
  const [search, setSearch] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const chosen = { pod: pod || undefined, previous: isPrevious || undefined };
  const [log, state] = useLog(id, { ...chosen, follow: true }, pods);
  const [found, drawn] = useFound(log, search.toLowerCase(), state.version);
  const shown = found ?? log.lines;
  return (
    <section aria-label="Logs" class={css.logs}>
      <div class={css.tools}>
        <select aria-label="Pod" value={pod} onChange={(event) => setPod(event.currentTarget.value)}>
          <option value="">Newest pod or leader</option>
          {pods.map((one) => (
            <option key={one.id} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
        <input
          type="search"
          aria-label="Search in the log"
          placeholder="Search"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <label>
          <input type="checkbox" checked={isFollowing} onChange={() => setFollowing(!isFollowing)} /> Follow
        </label>
        <label>
          <input type="checkbox" checked={isPrevious} onChange={() => setPrevious(!isPrevious)} /> Previous attempt
        </label>
        <a href={urlOf(PATH, { path: { workloadId: id }, query: chosen })} download={`${id}.log`}>
          Download
        </a>
        <span class={parts.quiet} role="status">
          {count(shown.length, search ? "matching line" : "line")}
          {log.dropped > 0 && `, ${log.dropped} earlier ones are only in the download`}
          {state.isLive ? "" : ", ended"}
        </span>
      </div>
      {isWaiting && state.error ? (
        <Empty>{state.error.message}. The log appears here as soon as there is one.</Empty>
      ) : (
        <>
          <Problem error={state.error} />
          <Lines lines={shown} isFollowing={isFollowing} version={state.version + drawn} />
        </>
      )}
    </section>
  );
}

function Lines({ lines, isFollowing, version }: { lines: string[]; isFollowing: boolean; version: number }) {
  const box = useRef<HTMLDivElement>(null);
  const { first, last } = useVisible(box, LINE_HEIGHT, lines.length);
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [isFollowing, version, lines.length]);
  return (
    <div class={css.log} ref={box} tabIndex={0} role="log" aria-label="Output" aria-live="off">
      <div style={{ height: `${first * LINE_HEIGHT}px` }} />
      {lines.slice(first, last).map((line, at) => (
        <div key={first + at} class={css.line}>
          {parseLine(line).map((span, number) => (
            <span key={number} data-color={span.color} data-bold={span.isBold}>
              {span.text}
            </span>
          ))}
        </div>
      ))}
      <div style={{ height: `${(lines.length - last) * LINE_HEIGHT}px` }} />
    </div>
  );
}
