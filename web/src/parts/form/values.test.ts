import { expect, test } from "vitest";
import { layOut, type Field } from "./fields";
import { countValues, merged, pathText, valueAt, withValue } from "./values";

test("a value is set below objects and lists that are not there yet", () => {
  const root = withValue({}, ["variables", 0, "name"], "A");
  expect(root).toEqual({ variables: [{ name: "A" }] });
  expect(valueAt(root, ["variables", 0, "name"])).toBe("A");
});

test("without a value, the objects around it are gone too", () => {
  expect(withValue({ compute: { gpus: 1 }, image: "x" }, ["compute", "gpus"], undefined)).toEqual({ image: "x" });
});

test("an item stays while it is emptied, and goes when it is removed", () => {
  const root = { variables: [{ name: "A" }, { name: "B" }] };
  expect(withValue(root, ["variables", 0, "name"], undefined)).toEqual({ variables: [{}, { name: "B" }] });
  expect(withValue(root, ["variables", 0], undefined)).toEqual({ variables: [{ name: "B" }] });
});

test("paths are written as the server writes them", () => {
  expect(pathText(["storage", "git", 0, "path"])).toBe("storage.git[0].path");
});

test("what is above wins; objects are merged", () => {
  expect(merged({ a: { b: 1, c: 2 }, d: [1] }, { a: { b: 3 }, d: [] })).toEqual({ a: { b: 3, c: 2 }, d: [] });
});

test("values are counted, items of lists as one", () => {
  expect(countValues({ a: 1, b: [{ c: 1, d: 2 }], e: { f: "x" } })).toBe(3);
});

test("the common fields come first, wherever they are", () => {
  const field = (name: string, more: Partial<Field> = {}): Field => ({
    name,
    label: name,
    text: "",
    type: "string",
    ...more,
  });
  const layout = layOut([
    field("image", { isCommon: true }),
    field("user"),
    field("compute", { type: "object", members: [field("gpus", { isCommon: true }), field("memory")] }),
    field("leader", { type: "object", isRole: true, members: [] }),
  ]);
  expect(layout.common.map((one) => pathText(one.path))).toEqual(["image", "compute.gpus"]);
  expect(layout.groups.map((group) => [group.title, group.fields.map((one) => pathText(one.path))])).toEqual([
    ["General", ["user"]],
    ["compute", ["compute.memory"]],
  ]);
  expect(layout.roles.map((one) => one.field.name)).toEqual(["leader"]);
});
