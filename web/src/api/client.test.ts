import { expect, test } from "vitest";
import { issuesIn } from "./client";

test.each([
  ["The server is stopping; send it again", []],
  ["spec.image: is missing; it must be given", [["spec.image", "is missing; it must be given"]]],
  [
    "name: is taken; spec.ports[0].container: is 0; it must be at least 1",
    [
      ["name", "is taken"],
      ["spec.ports[0].container", "is 0; it must be at least 1"],
    ],
  ],
])("violations are found in: %s", (details, want) => {
  expect(issuesIn(details).map((issue) => [issue.field, issue.details])).toEqual(want);
});
