import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { actionOf, filterOf, resultOf, selectEntries, spanOf, subjectOf } from "./entries";

const entry = (facts: Partial<Schemas["AuditEntry"]>): Schemas["AuditEntry"] =>
  ({ subject: "ada", action: "create", metadata: {}, entity_type: "workloads", result: "Succeeded", ...facts }) as Schemas["AuditEntry"];

it("finds entries that have every word", () => {
  const entries = [entry({ entity_name: "train" }), entry({ entity_name: "train", action: "delete" })];
  expect(selectEntries(entries, "ADA delete").map((one) => one.action)).toEqual(["delete"]);
  expect(selectEntries(entries, "")).toHaveLength(2);
});

it("shows a day unless told otherwise", () => {
  expect([spanOf(null).hours, spanOf("hour").hours, spanOf("nonsense").hours]).toEqual([24, 1, 24]);
});

it("lets the server filter by who and result", () => {
  expect(filterOf("ada", "Failed")).toBe("subject=@ada,result==Failed");
  expect(filterOf("", "nonsense")).toBeUndefined();
  expect(filterOf("", "", "c1")).toBe("cluster_id==c1");
});

it("says what an entry is about as people call it", () => {
  expect(subjectOf({ entity_type: "workloads", entity_name: "train" })).toBe("workload train");
  expect(subjectOf({ entity_type: "access_rules", entity_name: "" })).toBe("access rule");
  expect(subjectOf({ entity_type: "policies", entity_name: "max" })).toBe("policy max");
});

it.each([
  ["update", { operation: "suspend" }, "suspend"],
  ["create", { operation: "execute_in_workload" }, "execute in workload"],
  ["sign-in", { operation: "create_session" }, "sign-in"],
  ["delete", {}, "delete"],
])("names the operation of the action %s: %j", (action, metadata, want) => {
  expect(actionOf({ action, metadata })).toBe(want);
});

it("tells the status of a refusal", () => {
  expect(resultOf({ result: "Failed", http_status_code: 403 })).toBe("Failed (403)");
  expect(resultOf({ result: "Succeeded", http_status_code: 200 })).toBe("Succeeded");
});
