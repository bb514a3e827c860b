import { expect, test } from "vitest";
import { aroundProject, describeScope, placeOf, placesOf } from "./places";

const places = placesOf(
  [{ id: "4", name: "vision", clusterId: "c1" }],
  [{ id: "4", name: "research", clusterId: "c2" }],
  [{ uuid: "c2", name: "lab" }],
);
test("a scope is named, and known to be in a cluster", () => {
  const project = { scope: "project", projectId: 4 };
  expect([describeScope(project, places), placeOf(project, places)?.cluster]).toEqual(["project vision", "c1"]);
  const department = { scope: "department", departmentId: "4" };
  expect([describeScope(department, places), placeOf(department, places)?.cluster]).toEqual(["department research", "c2"]);
  expect(describeScope({ scope: "cluster", clusterId: "c2" }, places)).toBe("cluster lab");
  expect(describeScope({ scope: "tenant" }, places)).toBe("the whole installation");
  expect(describeScope({ scope: "project", projectId: 9 }, places)).toBe("project 9");
});

test("policies around a project are told from the nearest to the widest", () => {
  const refs = [
    { scope: "tenant" },
    { scope: "cluster", clusterId: "c2" },
    { scope: "cluster", clusterId: "c1" },
    { scope: "department", departmentId: "4" },
    { scope: "project", projectId: 4 },
    { scope: "project", projectId: 3 },
  ];
  const around = aroundProject(refs, { id: "4", parentId: "4", clusterId: "c1" });
  expect(around.map((one) => describeScope(one, places))).toEqual([
    "project vision",
    "department research",
    "cluster c1",
    "the whole installation",
  ]);
});
