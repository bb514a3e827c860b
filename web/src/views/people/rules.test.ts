import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { describeScope, rulesBySubject, subjectsWithoutRules } from "./rules";

const rule = (id: number, subjectType: "group" | "user", subjectId: string): Schemas["RuleView"] => ({
  id,
  subjectId,
  subjectType,
  roleId: 1,
  roleName: "L1 researcher",
  scopeId: "7",
  scopeType: "project",
  scopeName: "vision",
  createdAt: "",
  createdBy: "",
  updatedAt: "",
});

test("a group and a user of one name have their own rules", () => {
  const bySubject = rulesBySubject([rule(1, "user", "ann"), rule(2, "group", "ann"), rule(3, "user", "ann")]);
  expect(bySubject.get("user ann")?.map((one) => one.id)).toEqual([1, 3]);
  expect(bySubject.get("group ann")?.map((one) => one.id)).toEqual([2]);
});

test("a scope is described as people call it", () => {
  expect(describeScope(rule(1, "user", "ann"))).toBe("project vision");
  expect(describeScope({ ...rule(1, "user", "ann"), scopeType: "tenant" })).toBe("the whole installation");
});

test("only those whose rules are all elsewhere are left out", () => {
  const shown = rulesBySubject([rule(1, "user", "ann")]);
  const all = [rule(1, "user", "ann"), rule(2, "user", "ann"), rule(3, "user", "bob")];
  expect([...subjectsWithoutRules(all, shown)]).toEqual(["user bob"]);
});
