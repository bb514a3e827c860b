import { expect, test } from "vitest";
import type { Field } from "../../parts/form/fields";
import { type AssetKind, kindsOfGroup, scopeMembers, specOfAsset, withCredentials } from "./asset-kinds";

const kind = (path: string, member = ""): AssetKind => ({ path, kind: path, title: path, member, resource: "", fields: [] });

test("a group has its kinds", () => {
  const kinds = [kind("environment"), kind("datasource/git"), kind("datasource/s3")];
  expect(kindsOfGroup(kinds, "datasource").map((one) => one.path)).toEqual(["datasource/git", "datasource/s3"]);
  expect(kindsOfGroup(kinds, "environment")).toHaveLength(1);
});

test("a spec is read from lists of one kind and of several", () => {
  const spec = { repository: "r", branch: null, path: "/data" };
  const want = { repository: "r", path: "/data" };
  expect(specOfAsset(kind("datasource/git", "git"), { spec: { git: spec, s3: null } })).toEqual(want);
  expect(specOfAsset(kind("compute"), { spec })).toEqual(want);
});

test("a scope is sent by its own member", () => {
  expect(scopeMembers({ id: "7", type: "project", title: "", cluster: "c" })).toEqual({ scope: "project", projectId: 7 });
  expect(scopeMembers({ id: "c", type: "cluster", title: "", cluster: "c" })).toEqual({ scope: "cluster", clusterId: "c" });
});

test("credentials are chosen by name and sent by id", () => {
  const fields = [{ name: "a", refers: "credential" }, { name: "b" }] as Field[];
  const [first, second] = withCredentials(fields, [{ id: "1", name: "registry" }]);
  expect([first?.choices, first?.choiceTitles?.["1"], second?.choices]).toEqual([["1"], "registry", undefined]);
});
