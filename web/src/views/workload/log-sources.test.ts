import { expect, test } from "vitest";
import { isWorthReading, sourcesOf } from "./log-sources";

const none = sourcesOf([]);
const starting = sourcesOf([{ name: "a-0-0", k8sPhase: "Pending" }]);
const running = sourcesOf([{ name: "a-0-0", k8sPhase: "Running" }]);
const restarted = sourcesOf([{ name: "a-0-0", k8sPhase: "Running", restarts: 1 }]);
const again = sourcesOf([{ name: "a-0-1", k8sPhase: "Running" }]);

test.each([
  ["its first pod comes", none, starting, true, true],
  ["the pod can be read now", starting, running, true, true],
  ["nothing has changed", running, running, true, false],
  ["it has ended and its pod with it", running, starting, false, false],
  ["its container starts again", running, restarted, false, true],
  ["a new pod follows", running, again, false, true],
  ["its pods are gone", running, none, true, false],
])("a log is read again or not when %s", (_, read, now, hasFailed, want) => {
  expect(isWorthReading(read, now, hasFailed)).toBe(want);
});
