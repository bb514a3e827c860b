import { expect, test } from "vitest";
import type { KindForm } from "../../api/forms";
import { copiedName, problemsOf, requestOf, specOf, withProject, withSettings } from "./submission";

const form: KindForm = { title: "T", rest: "ts", noun: "t", outsideSpec: ["masterSpec"], policySections: [], fields: [] };

test("a request and its form are the same both ways", () => {
  const spec = { image: "x", masterSpec: { image: "y" } };
  const request = requestOf(form, { name: "n", projectId: "1", templateId: "", spec }, "c");
  expect(request).toEqual({ name: "n", projectId: "1", clusterId: "c", spec: { image: "x" }, masterSpec: { image: "y" } });
  expect(specOf(form, request)).toEqual(spec);
});

test("nulls of an answer are left out", () => {
  expect(specOf(form, { spec: { image: "x", args: null, compute: { gpus: null } } })).toEqual({
    image: "x",
    compute: {},
  });
});

test("problems are found by the path of their field", () => {
  const problems = problemsOf([
    { field: "spec.image", details: "is required" },
    { field: "name", details: "is taken" },
    { field: "spec.image", details: "is too long" },
  ]);
  expect([...problems]).toEqual([
    ["image", ["is required", "is too long"]],
    ["name", ["is taken"]],
  ]);
});

test.each([
  ["train", "train-2"],
  ["train-2", "train-3"],
  ["train-9x", "train-9x-2"],
])("a copy of %s is %s", (name, want) => {
  expect(copiedName(name)).toBe(want);
});

test("an address sets values of a spec", () => {
  const spec = { image: "x", compute: { gpuDevicesRequest: 4 } };
  expect(withSettings(spec, ["compute.gpuDevicesRequest=1", 'nodePools=["a"]', "args=not JSON"])).toEqual({
    image: "x",
    compute: { gpuDevicesRequest: 1 },
    nodePools: ["a"],
  });
});

test.each([
  ["", "1"],
  ["2", "2"],
  ["gone", "1"],
])("a draft with the project %j has the project %s", (projectId, want) => {
  const draft = { name: "n", projectId, templateId: "", spec: {} };
  const projects = [{ id: "1" }, { id: "2" }];
  expect(withProject(draft, projects, projects[0])).toEqual({ ...draft, projectId: want });
  expect(withProject(draft, projects, undefined)).toBe(draft);
});
