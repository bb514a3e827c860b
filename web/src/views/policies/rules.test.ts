import { expect, test } from "vitest";
import { imposedIds, listDefaults, listRules, sourcesOfDefault } from "./rules";

test("each rule is told with its field and its origin", () => {
  const rows = listRules({
    compute: { gpuDevicesRequest: { max: 4, min: 1, sourceOfRule: { scope: "tenant" } } },
    terminationGracePeriodSeconds: { max: 300, sourceOfRule: { scope: "system", isFallback: true } },
    image: { required: true, sourceOfRule: { scope: "department", departmentId: "3" } },
  });
  expect(rows).toEqual([
    { field: "compute.gpuDevicesRequest", rule: "max 4", source: { scope: "tenant" } },
    { field: "compute.gpuDevicesRequest", rule: "min 1", source: { scope: "tenant" } },
    { field: "terminationGracePeriodSeconds", rule: "max 300", source: { scope: "system", isFallback: true } },
    { field: "image", rule: "required", source: { scope: "department", departmentId: "3" } },
  ]);
});

test("rules for items of lists keep the path", () => {
  const rows = listRules({
    environmentVariables: {
      sourceOfRule: { scope: "project", projectId: 2 },
      instances: { locked: ["TEAM"], canAdd: false },
    },
    storage: { nfs: { sourceOfRule: { scope: "tenant" }, attributes: { readOnly: { required: true } } } },
  });
  expect(rows).toEqual([
    { field: "environmentVariables.instances", rule: 'locked ["TEAM"]', source: { scope: "project", projectId: 2 } },
    { field: "environmentVariables.instances", rule: "canAdd false", source: { scope: "project", projectId: 2 } },
    { field: "storage.nfs.attributes.readOnly", rule: "required", source: { scope: "tenant" } },
  ]);
});

test("defaults are told by field", () => {
  expect(listDefaults({ backoffLimit: 2, compute: { gpuDevicesRequest: 1 } })).toEqual([
    { field: "backoffLimit", value: "2" },
    { field: "compute.gpuDevicesRequest", value: "1" },
  ]);
});

test("a default comes from the nearest policy that has it, a list from all of them", () => {
  const variables = { environmentVariables: { instances: [{ name: "A", value: "1" }] } };
  const policies = [
    { scope: "project", defaults: variables },
    { scope: "department", defaults: { backoffLimit: 2 } },
    { scope: "tenant", defaults: { backoffLimit: 3, ...variables } },
  ];
  expect(sourcesOfDefault({ field: "backoffLimit", value: "2" }, policies)).toEqual(["department"]);
  expect(sourcesOfDefault({ field: "environmentVariables.instances", value: "" }, policies)).toEqual(["project", "tenant"]);
  expect(sourcesOfDefault({ field: "image", value: "x" }, policies)).toEqual([]);
});

test("imposed assets are listed, with or without roles", () => {
  expect([imposedIds(["a"]), imposedIds({ leader: ["a", "b"], worker: ["b"] }), imposedIds(undefined)]).toEqual([["a"], ["a", "b"], []]);
});
