import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Feed, type FeedMessage } from "./feed";

function view(id: string, more: object = {}): object {
  return {
    id,
    name: id,
    type: "Training",
    phase: "Running",
    projectName: "team",
    submittedBy: "ada",
    createdAt: "2026-01-01T00:00:00Z",
    phaseUpdatedAt: "2026-01-01T00:00:00Z",
    deletedAt: null,
    ...more,
  };
}

function change(revision: number, id: string, workload: object | null): string {
  return `id: ${revision}\nevent: workload\ndata: ${JSON.stringify({ workloadId: id, workload })}\n\n`;
}

/** A server that answers each request with the next of the given answers, then never again. */
function serve(...answers: (() => Response)[]): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (path: string) => {
    asked.push(path);
    const answer = answers.shift();
    return answer ? Promise.resolve(answer()) : new Promise(() => undefined);
  });
  return asked;
}

const list = (...views: object[]) => () =>
  new Response(JSON.stringify({ workloads: views }), { headers: { "x-fairlead-revision": "5" } });
const stream = (text: string) => () => new Response(text);
const refusal = (status: number) => () => new Response("{}", { status });

describe("the feed", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  async function run(): Promise<FeedMessage[]> {
    const told: FeedMessage[] = [];
    const feed = new Feed((message) => told.push(message));
    feed.start();
    await vi.advanceTimersByTimeAsync(2000);
    feed.end();
    return told;
  }

  it("lists, then watches from the list's revision", async () => {
    const asked = serve(list(view("a"), view("b")), stream(change(6, "a", view("a", { phase: "Failed" }))));
    const told = await run();
    expect(asked[1]).toBe("/api/v1/workloads/watch?revision=5");
    expect(told.find((message) => message.type === "all")?.rows.map((row) => row.id)).toEqual(["a", "b"]);
    expect(told.find((message) => message.type === "changes")?.rows[0]?.phase).toBe("Failed");
  });

  it("goes on after the last message when the connection breaks", async () => {
    const asked = serve(list(), stream(change(8, "a", view("a"))));
    await run();
    expect(asked[2]).toBe("/api/v1/workloads/watch?revision=8");
  });

  it("tells which workloads are gone", async () => {
    const deleted = view("a", { deletedAt: "2026-01-02T00:00:00Z" });
    serve(list(view("a"), view("b")), stream(change(6, "a", deleted) + change(7, "b", null)));
    const told = await run();
    expect(told.find((message) => message.type === "changes")).toEqual({ type: "changes", rows: [], gone: ["a", "b"] });
  });

  it("lists again if the changes are no longer kept", async () => {
    const asked = serve(list(), refusal(410), list());
    await run();
    expect(asked[2]).toMatch(/^\/api\/v1\/workloads\?/);
  });

  it("stops when nobody is signed in", async () => {
    const asked = serve(refusal(401));
    const told = await run();
    expect(asked).toHaveLength(1);
    expect(told.at(-1)).toEqual({ type: "state", state: "signed-out" });
  });

  it("reads overlapping pages, so that a deletion in between skips nobody", async () => {
    const page = Array.from({ length: 500 }, (_, number) => view(`w${number}`));
    const asked = serve(list(...page), list(view("w499"), view("last")), stream(""));
    const told = await run();
    expect(asked[1]).toContain("offset=450");
    expect(told.find((message) => message.type === "all")?.rows).toHaveLength(501);
  });
});
