import { describe, expect, it } from "vitest";
import { MessageParser } from "./sse";

describe("messages of a watch", () => {
  it("are put together from pieces", () => {
    const parser = new MessageParser();
    expect(parser.push(": watching\n\nid: 7\nevent: work")).toEqual([{ id: "", event: "", data: "" }]);
    expect(parser.push('load\ndata: {"a": 1}\n\n')).toEqual([{ id: "7", event: "workload", data: '{"a": 1}' }]);
  });

  it("keep the last id", () => {
    const parser = new MessageParser();
    expect(parser.push("id: 9\n\ndata: x\n\n").map((message) => message.id)).toEqual(["9", "9"]);
  });
});
