import { expect, test } from "vitest";
import { listScopes } from "./scopes";

test("scopes are listed from the widest to the narrowest", () => {
  const scopes = listScopes({
    clusters: [{ uuid: "c", name: "lab" }],
    departments: [{ id: "1", name: "research", clusterId: "c" }],
    projects: [{ id: "2", name: "vision", clusterId: "c" }],
  });
  expect(scopes.map((scope) => scope.title)).toEqual(["Everything in lab", "Department research", "Project vision"]);
});
