import { describe, expect, it } from "vitest";
import { score } from "./score";

describe("a command", () => {
  it("is found by every word, in its title or its note", () => {
    expect(score("train-7", "vision · Training", ["vision", "train"])).toBeGreaterThan(0);
    expect(score("train-7", "vision · Training", ["vision", "serve"])).toBe(0);
  });
  it("counts more if its title begins with the first word", () => {
    expect(score("audit", "", ["au"])).toBeGreaterThan(score("by-audit", "", ["au"]));
  });
});
