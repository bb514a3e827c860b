import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { describeScope, placeOf, placesOf } from "./places";

const places = placesOf(
  [{ id: "4", name: "vision", clusterId: "c1" }],
  [{ id: "4", name: "research", clusterId: "c2" }],
  [{ uuid: "c2", name: "lab" }],
);
const meta = (facts: Partial<Schemas["PolicyMetaView"]>) => facts as Schemas["PolicyMetaView"];

test("a scope is named, and known to be in a cluster", () => {
  const project = meta({ scope: "project", projectId: 4 });
  expect([describeScope(project, places), placeOf(project, places)?.cluster]).toEqual(["project vision", "c1"]);
  const department = meta({ scope: "department", departmentId: "4" });
  expect([describeScope(department, places), placeOf(department, places)?.cluster]).toEqual(["department research", "c2"]);
  expect(describeScope(meta({ scope: "cluster", clusterId: "c2" }), places)).toBe("cluster lab");
  expect(describeScope(meta({ scope: "tenant" }), places)).toBe("the whole installation");
  expect(describeScope(meta({ scope: "project", projectId: 9 }), places)).toBe("project 9");
});
