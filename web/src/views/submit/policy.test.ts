import { expect, test } from "vitest";
import type { FieldRule } from "../../parts/form/form";
import type { JsonObject, Path } from "../../parts/form/values";
import { findRule } from "./policy";

const whole = [{ name: "", member: "" }];
const names = new Map([["department 3", "research"]]);
const source = { scope: "department", departmentId: "3" };

interface Case {
  name: string;
  rules: JsonObject;
  defaults?: JsonObject;
  path: Path;
  want: FieldRule | undefined;
}

test.each<Case>([
  {
    name: "a limit names its scope",
    rules: { compute: { gpuDevicesRequest: { max: 4, sourceOfRule: source } } },
    path: ["compute", "gpuDevicesRequest"],
    want: { note: "At most 4 (policy of department research).", isLocked: false, max: 4 },
  },
  {
    name: "a locked field has the policy's value",
    rules: { backoffLimit: { canEdit: false, sourceOfRule: { scope: "tenant" } } },
    defaults: { backoffLimit: 2 },
    path: ["backoffLimit"],
    want: { note: "Always 2 (policy of the installation).", isLocked: true, default: 2 },
  },
  {
    name: "options become choices",
    rules: { image: { options: [{ value: "a" }, "b"], sourceOfRule: { scope: "project", projectId: 7 } } },
    path: ["image"],
    want: { note: "Only these values are allowed (policy of project 7).", isLocked: false, options: ["a", "b"] },
  },
  {
    name: "items of a list have a rule for the list",
    rules: { environmentVariables: { instances: { canAdd: false } } },
    path: ["environmentVariables"],
    want: { note: "No items can be added.", isLocked: true },
  },
  {
    name: "and one for the members of each item",
    rules: { ports: { attributes: { external: { blocked: true } } } },
    path: ["ports", 0, "external"],
    want: { note: "Must not be set.", isLocked: true },
  },
  { name: "other fields have none", rules: { image: { required: true } }, path: ["command"], want: undefined },
])("$name", ({ rules, defaults, path, want }) => {
  expect(findRule({ rules, defaults: defaults ?? {} }, whole, path, names)).toEqual(want);
});

test("roles have sections of their own", () => {
  const sections = [
    { name: "worker", member: "" },
    { name: "master", member: "masterSpec" },
  ];
  const policy = { rules: { master: { image: { required: true } } }, defaults: {} };
  expect(findRule(policy, sections, ["masterSpec", "image"], names)?.note).toBe("Must be set.");
  expect(findRule(policy, sections, ["image"], names)).toBeUndefined();
});
