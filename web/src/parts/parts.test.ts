import { expect, test } from "vitest";
import { ApiError } from "../api/client";
import { headlineOf } from "./parts";

const issues = [
  { field: "name", details: "is missing" },
  { field: "spec.image", details: "is empty" },
];

test.each([
  ["name: is missing; spec.image: is empty", issues, "2 values cannot be accepted:"],
  ["The policy refuses it", issues, "The policy refuses it"],
  ["name: is missing", issues.slice(0, 1), "name: is missing"],
  ["The server does not answer", [], "The server does not answer"],
])("violations are not said twice: %s", (message, listed, want) => {
  expect(headlineOf(new ApiError(400, message, listed))).toBe(want);
});
