import { expect, test } from "vitest";
import { changesOf } from "./change";

test("only what was changed is sent, and null takes a value away", () => {
  const before = { image: "a", autoscaling: { minReplicas: 1, maxReplicas: 3 }, command: "x" };
  const after = { image: "a", autoscaling: { minReplicas: 2, maxReplicas: 3 } };
  expect(changesOf(before, after, ["image", "autoscaling", "command"])).toEqual({
    autoscaling: { minReplicas: 2 },
    command: null,
  });
});
