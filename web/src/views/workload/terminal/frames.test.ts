import { expect, test } from "vitest";
import { Channel, encodeFrame, FrameReader } from "./frames";

test("frames are read as they were written, however they are cut", () => {
  const bytes = new Uint8Array([...encodeFrame(Channel.output, "hello"), ...encodeFrame(Channel.exit, "0")]);
  for (const size of [1, 3, 7, 100]) {
    const reader = new FrameReader();
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.push(bytes.slice(at, at + size)));
    const texts = frames.map((frame) => [frame.channel, new TextDecoder().decode(frame.content)]);
    expect(texts).toEqual([
      [Channel.output, "hello"],
      [Channel.exit, "0"],
    ]);
  }
});
