// Lists all workloads, then follows their changes, for as long as it runs. One feed serves all tabs of a browser
// (feed.worker.ts), so that ten tabs have one connection.
import type { Schemas } from "../api/client";
import { type Row, toRow } from "./rows";
import { MessageParser } from "./sse";

export type FeedState = "connecting" | "live" | "signed-out";
export type FeedMessage =
  | { type: "all"; rows: Row[] }
  | { type: "changes"; rows: Row[]; gone: string[] }
  | { type: "state"; state: FeedState };

/** What a tab asks of the feed. */
export type FeedRequest = { type: "join"; user: string } | { type: "leave" } | { type: "sign-out" };

const PAGE = 500;
/** Rows that two pages have in common: if workloads are deleted between two requests, none is skipped. */
const OVERLAP = 50;
const FLUSH_MS = 100;
const PAUSES_MS = [300, 1000, 2000, 5000];

class Refused extends Error {
  constructor(readonly status: number) {
    super(`The server answered ${status}`);
  }
}

export class Feed {
  readonly rows = new Map<string, Row>();
  state: FeedState = "connecting";
  private stop = new AbortController();
  private revision = "";
  private failures = 0;
  private changed = new Map<string, Row | null>();

  constructor(private readonly send: (message: FeedMessage) => void) {}

  get hasListed(): boolean {
    return this.revision !== "";
  }

  /** Ends, and forgets what it knows. */
  end(): void {
    this.stop.abort();
    this.rows.clear();
    this.revision = "";
    this.tell("signed-out");
  }

  /** Starts anew; what an earlier start was doing ends. */
  start(): void {
    this.stop.abort();
    this.stop = new AbortController();
    this.rows.clear();
    this.revision = "";
    this.failures = 0;
    this.tell("connecting");
    void this.run(this.stop.signal);
  }

  private tell(state: FeedState): void {
    this.state = state;
    this.send({ type: "state", state });
  }

  private async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        if (!this.revision) await this.list(signal);
        await this.watch(signal);
      } catch (error) {
        const status = error instanceof Refused ? error.status : 0;
        if (signal.aborted) return;
        if (status === 401) {
          this.tell("signed-out");
          return;
        }
        // The changes since then are no longer kept: list again.
        if (status === 410) this.revision = "";
      }
      this.tell("connecting");
      const pause = PAUSES_MS[Math.min(this.failures++, PAUSES_MS.length - 1)];
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  private async fetch(path: string, signal: AbortSignal): Promise<Response> {
    const response = await fetch(path, { signal, credentials: "same-origin" });
    if (!response.ok) throw new Refused(response.status);
    return response;
  }

  private async list(signal: AbortSignal): Promise<void> {
    const rows = new Map<string, Row>();
    let revision = "";
    for (let offset = 0; ; offset += PAGE - OVERLAP) {
      const query = `limit=${PAGE}&offset=${offset}&sortBy=createdAt&sortOrder=asc`;
      const response = await this.fetch(`/api/v1/workloads?${query}`, signal);
      // Changes while the list was read are watched from its beginning.
      revision ||= response.headers.get("x-fairlead-revision") ?? "";
      const page = (await response.json()) as Schemas["WorkloadList"];
      for (const view of page.workloads) rows.set(view.id, toRow(view));
      if (page.workloads.length < PAGE) break;
    }
    this.rows.clear();
    for (const [id, row] of rows) this.rows.set(id, row);
    this.revision = revision;
    this.changed.clear();
    this.send({ type: "all", rows: [...rows.values()] });
  }

  private async watch(signal: AbortSignal): Promise<void> {
    const response = await this.fetch(`/api/v1/workloads/watch?revision=${this.revision}`, signal);
    if (!response.body) return;
    this.failures = 0;
    this.tell("live");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new MessageParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const message of parser.push(value)) {
        if (message.id) this.revision = message.id;
        if (message.data) this.take(JSON.parse(message.data) as Schemas["ChangeView"]);
      }
    }
  }

  private take(change: Schemas["ChangeView"]): void {
    const isGone = !change.workload || change.workload.deletedAt !== null;
    const row = isGone || !change.workload ? null : toRow(change.workload);
    if (row) this.rows.set(row.id, row);
    else this.rows.delete(change.workloadId);
    if (this.changed.size === 0) setTimeout(() => this.flush(), FLUSH_MS);
    this.changed.set(change.workloadId, row);
  }

  private flush(): void {
    const rows = [...this.changed.values()].filter((row) => row !== null);
    const gone = [...this.changed].filter(([, row]) => row === null).map(([id]) => id);
    this.changed.clear();
    if (rows.length || gone.length) this.send({ type: "changes", rows, gone });
  }
}
