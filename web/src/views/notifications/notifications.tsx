// Notification rules, and messages that could not be delivered.
import { useState } from "preact/hooks";
import { get, post, remove, type Schemas } from "../../api/client";
import { type Changes, useChanges } from "../../parts/change";
import { ConfirmButton } from "../../parts/confirm";
import { useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { CopyButton, css as parts, Empty, Panel, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { href } from "../../router";
import { isShown } from "../../store/clusters";
import { describeEvents, describeSubject } from "./events";
import { NewRule } from "./new-rule";

type Rule = Schemas["NotificationRuleView"];
type Delivery = Schemas["DeliveryView"];

export function Notifications() {
  const changes = useChanges();
  const [made, setMade] = useState<Rule>();
  const [isAdding, setAdding] = useState(false);
  const rules = useLoad((signal) => get("/api/v1/notification-rules", { signal }), changes.version);
  const errors = useLoad((signal) => get("/api/v1/notification-rules/errors", { signal }), changes.version);
  const projects = useLoad((signal) => get("/api/v1/org-unit/projects", { query: { limit: 500 }, signal }), "");
  const own = projects.value?.projects ?? [];
  const hidden = new Set(own.filter((one) => !isShown(one.clusterId)).map((one) => one.id));
  const shown = (rules.value?.rules ?? []).filter((rule) => !hidden.has(rule.projectId));
  const failed = (errors.value?.deliveries ?? []).filter((one) => shown.some((rule) => rule.id === one.ruleId));
  const names = new Map(own.map((one) => [one.id, one.name]));
  return (
    <div class={parts.page}>
      <div class={parts.title}>
        <ViewTitle>Notifications</ViewTitle>
        <button type="button" data-main onClick={() => setAdding(true)}>
          Add a rule
        </button>
      </div>
      <Problem error={changes.error ?? rules.error ?? errors.error} />
      {made?.signingKey && (
        <p role="status" class={parts.secret}>
          The key that signs messages to {made.target}, shown only now: <code>{made.signingKey}</code>{" "}
          <CopyButton text={made.signingKey} />
        </p>
      )}
      {rules.value && shown.length === 0 && (
        <Empty command="fairlead notification add --email me@lab.example --on failed,completed">
          There are no notification rules. Add one here, or with:
        </Empty>
      )}
      {shown.length > 0 && (
        <Table label="Rules" columns={ruleColumns(names, changes)} rows={shown} keyOf={(rule) => rule.id} />
      )}
      <Panel title="Messages that were not delivered">
        {errors.value && failed.length === 0 && <p class={parts.quiet}>Every message was delivered.</p>}
        {failed.length > 0 && (
          <Table
            label="Messages that were not delivered"
            columns={deliveryColumns(new Map(shown.map((rule) => [rule.id, rule])))}
            rows={failed}
            keyOf={(one) => one.id}
          />
        )}
      </Panel>
      {isAdding && (
        <NewRule projects={own.filter((one) => isShown(one.clusterId))} changes={changes} onMade={setMade} onClose={() => setAdding(false)} />
      )}
    </div>
  );
}

function ruleColumns(projects: ReadonlyMap<string, string>, changes: Changes): Column<Rule>[] {
  return [
    { title: "About", cell: (rule) => <strong>{describeSubject(rule, projects)}</strong> },
    { title: "When", cell: describeEvents },
    { title: "How", cell: (rule) => rule.channel },
    { title: "Where", cell: (rule) => rule.target },
    { title: "Owner", cell: (rule) => rule.owner },
    { title: "Created", cell: (rule) => <Time at={rule.createdAt} /> },
    { title: "", cell: (rule) => <RuleActions rule={rule} changes={changes} /> },
  ];
}

function RuleActions({ rule, changes }: { rule: Rule; changes: Changes }) {
  const path = { ruleId: rule.id };
  const send = async (): Promise<void> => {
    await post("/api/v1/notification-rules/{ruleId}/test", { path });
    tell(`Sending a test message to ${rule.target}. If it fails, it appears below.`);
  };
  return (
    <div class={parts.actions}>
      <button type="button" aria-label={`Send a test message to ${rule.target}`} onClick={() => void changes.make(send)}>
        Send a test
      </button>
      <ConfirmButton
        label="Delete"
        name={`Delete the rule for ${rule.target}`}
        question="Delete this rule?"
        changes={changes}
        act={() => remove("/api/v1/notification-rules/{ruleId}", { path })}
      >
        No more messages go to {rule.target}, and those that were not delivered are forgotten. The server does not show
        the whole address again, so you would have to enter it anew.
      </ConfirmButton>
    </div>
  );
}

function deliveryColumns(rules: ReadonlyMap<string, Rule>): Column<Delivery>[] {
  return [
    { title: "Event", cell: (one) => one.event },
    {
      title: "Workload",
      cell: (one) => (one.workloadId ? <a href={href(`/workloads/${one.workloadId}`)}>{one.workloadName}</a> : "–"),
    },
    { title: "To", cell: (one) => rules.get(one.ruleId)?.target ?? "–" },
    { title: "Happened", cell: (one) => <Time at={one.createdAt} /> },
    { title: "Attempts", isNumber: true, cell: (one) => one.attempts },
    { title: "Next attempt", cell: (one) => (one.nextAttempt ? <Time at={one.nextAttempt} /> : "given up") },
    { title: "Error", cell: (one) => one.error },
  ];
}
