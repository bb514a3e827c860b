// Who has an account, what each may do and where; administrators add people, grant and take roles.
import { useState } from "preact/hooks";
import { get, patch, post, remove, type Schemas } from "../../api/client";
import { may } from "../../api/session";
import { type Changes, useChanges } from "../../parts/change";
import { useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { CopyButton, css as parts, Dialog, Panel, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { query, setQuery } from "../../router";
import { isShown } from "../../store/clusters";
import { GrantDialog } from "./grant";
import css from "./people.module.css";
import { Roles } from "./roles";
import { describeScope, rulesBySubject, subjectsWithoutRules } from "./rules";

type User = Schemas["UserView"];
type Rule = Schemas["RuleView"];

/** A password or code that the server shows once. */
interface Secret {
  title: string;
  value: string;
}

export function People() {
  const changes = useChanges();
  const limit = { limit: 500 };
  const users = useLoad((signal) => get("/api/v1/users", { query: limit, signal }), changes.version);
  const rules = useLoad((signal) => get("/api/v1/authorization/access-rules", { query: limit, signal }), changes.version);
  const roles = useLoad((signal) => get("/api/v1/authorization/roles", { signal }), changes.version);
  const [secret, setSecret] = useState<Secret>();
  const search = query.value.get("q") ?? "";
  const all = rules.value?.accessRules ?? [];
  const inCluster = all.filter((rule) => isShown(rule.clusterId));
  const bySubject = rulesBySubject(inCluster);
  const elsewhere = subjectsWithoutRules(all, bySubject);
  const shown = (users.value ?? []).filter(
    (user) => user.username.toLowerCase().includes(search.toLowerCase()) && !elsewhere.has(`user ${user.username}`),
  );
  return (
    <div class={parts.page}>
      <ViewTitle>People</ViewTitle>
      <div class={parts.tools}>
        <input
          type="search"
          aria-label="Search people"
          placeholder="Search (press /)"
          value={search}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
        {may("users:create") && <AddUser changes={changes} onSecret={setSecret} />}
        {may("access_rules:create") && <Grant changes={changes} roles={roles.value ?? []} />}
      </div>
      <Problem error={changes.error ?? users.error ?? rules.error} />
      {secret && (
        <p role="status" class={parts.secret}>
          {secret.title}, shown only now: <code>{secret.value}</code> <CopyButton text={secret.value} />
        </p>
      )}
      {shown.length > 0 && (
        <Table
          label="People"
          columns={columnsOf(bySubject, changes, setSecret)}
          rows={shown}
          keyOf={(user) => user.id}
        />
      )}
      <OtherRules rules={inCluster} changes={changes} />
      <Roles roles={roles.value ?? []} changes={changes} />
    </div>
  );
}

function columnsOf(
  bySubject: Map<string, Rule[]>,
  changes: Changes,
  onSecret: (secret: Secret) => void,
): Column<User>[] {
  return [
    { title: "Name", cell: (user) => <strong>{user.username}</strong> },
    {
      title: "Roles",
      cell: (user) => <RuleList rules={bySubject.get(`user ${user.username}`) ?? []} changes={changes} />,
    },
    { title: "Groups", cell: (user) => user.groups?.join(", ") || "–" },
    { title: "Signed in", cell: (user) => <Time at={user.lastLogin || null} /> },
    { title: "Account", cell: (user) => <Account user={user} changes={changes} onSecret={onSecret} /> },
  ];
}

function RuleList({ rules, changes }: { rules: Rule[]; changes: Changes }) {
  if (rules.length === 0) return <span class={parts.quiet}>none: sees nothing</span>;
  return (
    <ul class={css.rules}>
      {rules.map((rule) => (
        <li key={rule.id}>
          {rule.roleName} <span class={parts.quiet}>of {describeScope(rule)}</span>{" "}
          {may("access_rules:delete") && <button
            type="button"
            aria-label={`Take away from ${rule.subjectId}: ${rule.roleName} of ${describeScope(rule)}`}
            onClick={() => void changes.make(() => takeAway(rule, changes))}
          >
            Take away
          </button>}
        </li>
      ))}
    </ul>
  );
}

/** Takes a role away, with the way back: the same rule again. */
async function takeAway(rule: Rule, changes: Changes): Promise<void> {
  await remove("/api/v1/authorization/access-rules/{accessRuleId}", { path: { accessRuleId: String(rule.id) } });
  const { subjectId, subjectType, roleId, scopeId, scopeType } = rule;
  const body = { subjectId, subjectType, roleId, scopeId, scopeType };
  tell(`${subjectId} is no longer ${rule.roleName} of ${describeScope(rule)}.`, () =>
    changes.make(() => post("/api/v1/authorization/access-rules", { body })),
  );
}

function Account({ user, changes, onSecret }: { user: User; changes: Changes; onSecret: (secret: Secret) => void }) {
  if (!may("users:update")) return <>{user.enabled === false ? "disabled" : "enabled"}</>;
  const isEnabled = user.enabled !== false;
  const path = { userId: user.id };
  const reset = async (): Promise<void> => {
    const { code } = await post("/api/v1/users/{userId}/reset-code", { path });
    onSecret({ title: `The code with which ${user.username} sets a new password`, value: code });
  };
  const enable = (enabled: boolean) => patch("/api/v1/users/{userId}", { path, body: { enabled } });
  const toggle = async (): Promise<void> => {
    await enable(!isEnabled);
    const said = isEnabled ? "is disabled and signed out everywhere" : "can sign in again";
    tell(`${user.username} ${said}.`, () => changes.make(() => enable(isEnabled)));
  };
  return (
    <div class={parts.actions}>
      {user.isLocal && isEnabled && (
        <button type="button" aria-label={`Reset password of ${user.username}`} onClick={() => void changes.make(reset)}>
          Reset password
        </button>
      )}
      <button
        type="button"
        aria-label={`${isEnabled ? "Disable" : "Enable"} ${user.username}`}
        onClick={() => void changes.make(toggle)}
      >
        {isEnabled ? "Disable" : "Enable"}
      </button>
    </div>
  );
}

function AddUser({ changes, onSecret }: { changes: Changes; onSecret: (secret: Secret) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [email, setEmail] = useState("");
  const add = async (): Promise<void> => {
    const made = await post("/api/v1/users", { body: { email } });
    if (made.tempPassword) onSecret({ title: `The password of ${made.username}`, value: made.tempPassword });
    else tell(`${made.username} was added without a password: they sign on with the identity provider.`);
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void changes.make(add).then((isAdded) => isAdded && setOpen(false));
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Add a person
      </button>
      {isOpen && (
        <Dialog title="Add a person" onClose={() => setOpen(false)}>
          <form onSubmit={submit}>
            <label class={parts.field}>
              E-mail address
              <input type="email" required value={email} onInput={(event) => setEmail(event.currentTarget.value)} />
            </label>
            <p class={parts.quiet}>The account sees nothing until it is granted a role.</p>
            <Problem error={changes.error} />
            <div class={parts.buttons}>
              <button type="button" onClick={() => setOpen(false)}>
                Cancel
              </button>
              <button data-main>Add</button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}

function Grant({ changes, roles }: { changes: Changes; roles: Schemas["RoleView"][] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" data-main onClick={() => setOpen(true)}>
        Grant a role
      </button>
      {isOpen && <GrantDialog changes={changes} roles={roles} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Rules of groups and service accounts. */
function OtherRules({ rules, changes }: { rules: Rule[]; changes: Changes }) {
  const others = [...rulesBySubject(rules.filter((rule) => rule.subjectType !== "user"))];
  if (others.length === 0) return null;
  return (
    <Panel title="Groups and service accounts">
      <dl class={css.others}>
        {others.map(([subject, own]) => (
          <>
            <dt>{subject}</dt>
            <dd>
              <RuleList rules={own} changes={changes} />
            </dd>
          </>
        ))}
      </dl>
    </Panel>
  );
}
