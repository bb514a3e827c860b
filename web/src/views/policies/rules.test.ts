import { expect, test } from "vitest";
import { listDefaults, listRules } from "./rules";

test("each rule is told with its field and its origin", () => {
  const rows = listRules({
    compute: { gpuDevicesRequest: { max: 4, min: 1, sourceOfRule: { scope: "tenant" } } },
    terminationGracePeriodSeconds: { max: 300, sourceOfRule: { scope: "system", isFallback: true } },
    image: { required: true, sourceOfRule: { scope: "department", departmentId: "3" } },
  });
  expect(rows).toEqual([
    { field: "compute.gpuDevicesRequest", rule: "max 4", scope: "the whole installation" },
    { field: "compute.gpuDevicesRequest", rule: "min 1", scope: "the whole installation" },
    { field: "terminationGracePeriodSeconds", rule: "max 300", scope: "built in" },
    { field: "image", rule: "required", scope: "department 3" },
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
    { field: "environmentVariables.instances", rule: 'locked ["TEAM"]', scope: "project 2" },
    { field: "environmentVariables.instances", rule: "canAdd false", scope: "project 2" },
    { field: "storage.nfs.attributes.readOnly", rule: "required", scope: "the whole installation" },
  ]);
});

test("defaults are told by field", () => {
  expect(listDefaults({ backoffLimit: 2, compute: { gpuDevicesRequest: 1 } })).toEqual([
    { field: "backoffLimit", value: "2" },
    { field: "compute.gpuDevicesRequest", value: "1" },
  ]);
});
