import { describe, expect, it } from "vitest";
import { parseLine, plainText } from "./ansi";
import { LogLines, LogSearch, MOST_LINES } from "./log-lines";

describe("lines of a log", () => {
  it("are put together from pieces", () => {
    const log = new LogLines();
    log.push("one\r\ntw");
    log.push("o\nthree");
    expect(log.lines).toEqual(["one", "two"]);
    log.end();
    expect(log.lines).toEqual(["one", "two", "three"]);
  });
  it("are dropped at the beginning when there are too many", () => {
    const log = new LogLines();
    log.push("x\n".repeat(MOST_LINES * 1.1));
    expect(log.dropped).toBe(0);
    log.push("last\n");
    expect([log.lines.length, log.dropped, log.lines.at(-1)]).toEqual([MOST_LINES, MOST_LINES * 0.1 + 1, "last"]);
  });
  it("are searched a slice at a time, also when some are dropped meanwhile", () => {
    const log = new LogLines();
    log.push("Yes\nno\n\x1b[1mYES\x1b[0m\n");
    const search = new LogSearch(log, "yes", plainText);
    expect(search.advance(2)).toBe(true);
    expect(search.found).toEqual(["Yes"]);
    expect(search.advance(2)).toBe(false);
    log.push("x\n".repeat(MOST_LINES * 1.1) + "yes\n");
    while (search.advance(50_000));
    expect(search.found).toHaveLength(3);
  });
  it("have the colours of a terminal", () => {
    expect(parseLine("a \x1b[1;31mred\x1b[0m b")).toEqual([
      { text: "a " },
      { text: "red", color: 1, isBold: true },
      { text: " b" },
    ]);
    expect(plainText("\x1b[2K\x1b[92mok\x1b[39m\x07")).toBe("ok");
  });
});
