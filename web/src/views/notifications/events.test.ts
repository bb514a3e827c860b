import { expect, test } from "vitest";
import { describeEvents, describeSubject } from "./events";

test("a rule says what it tells, and after how long a wait", () => {
  expect(describeEvents({ on: ["failed", "waiting"], waitingSeconds: 7200 })).toBe("failed, waiting (2 h)");
});

test("a rule is about a project, or about the workloads of its owner", () => {
  const projects = new Map([["7", "vision"]]);
  expect(describeSubject({ projectId: "7", owner: "ada" }, projects)).toBe("project vision");
  expect(describeSubject({ projectId: "8", owner: "ada" }, projects)).toBe("project 8");
  expect(describeSubject({ projectId: "", owner: "ada" }, projects)).toBe("workloads of ada");
});
