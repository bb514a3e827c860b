// The one store: all workloads that the user may see, kept current by the feed.
import { computed, signal } from "@preact/signals";
import { hasExpired, session } from "../api/session";
import { chosenCluster } from "./clusters";
import { Feed, type FeedMessage, type FeedRequest, type FeedState } from "./feed";
import type { Row } from "./rows";

const byId = new Map<string, Row>();
/** Counts changes of `byId`, so that views are drawn again. */
const version = signal(0);
export const feedState = signal<FeedState>("connecting");
export const hasLoaded = signal(false);

/** All workloads of the cluster that is looked at. */
export const rows = computed(() => {
  version.value; // eslint-disable-line @typescript-eslint/no-unused-expressions -- reading it is subscribing
  const all = [...byId.values()];
  const cluster = chosenCluster.value?.uuid;
  return cluster ? all.filter((row) => row.cluster === cluster) : all;
});

export function findRow(id: string): Row | undefined {
  version.value; // eslint-disable-line @typescript-eslint/no-unused-expressions -- reading it is subscribing
  return byId.get(id);
}

function take(message: FeedMessage): void {
  if (message.type === "state") {
    feedState.value = message.state;
    if (message.state === "signed-out" && session.value) {
      hasExpired.value = true;
      session.value = null;
    }
    return;
  }
  if (message.type === "all") byId.clear();
  else for (const id of message.gone) byId.delete(id);
  for (const row of message.rows) byId.set(row.id, row);
  if (message.type === "all") hasLoaded.value = true;
  version.value += 1;
}

let ask: ((request: FeedRequest) => void) | undefined;

/** Follows the workloads of whoever has just signed in. */
export function follow(user: string): void {
  byId.clear();
  hasLoaded.value = false;
  version.value += 1;
  ask ??= connect();
  ask({ type: "join", user });
}

/** Ends the feed of all tabs. */
export function endFeed(): void {
  ask?.({ type: "sign-out" });
}

function connect(): (request: FeedRequest) => void {
  if (typeof SharedWorker === "undefined") {
    const feed = new Feed(take);
    return (request) => (request.type === "join" ? feed.start() : feed.end());
  }
  const worker = new SharedWorker(new URL("./feed.worker.ts", import.meta.url), { type: "module", name: "feed" });
  worker.port.onmessage = ({ data }: MessageEvent<FeedMessage>) => take(data);
  const ask = (request: FeedRequest): void => worker.port.postMessage(request);
  addEventListener("pagehide", () => ask({ type: "leave" }));
  // The browser kept the page while another one was looked at.
  addEventListener("pageshow", (event) => event.persisted && session.value && ask({ type: "join", user: session.value.username }));
  return ask;
}
