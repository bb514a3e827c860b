// The policies of every scope, and what they make together in a project, with the origin of every rule.
import { useState } from "preact/hooks";
import { get, remove, type PathOf, type Schemas } from "../../api/client";
import { kinds } from "../../api/kinds";
import { may } from "../../api/session";
import { type Changes, useChanges } from "../../parts/change";
import { type Loaded, useLoad } from "../../parts/load";
import { css as parts, Empty, Panel, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { query, setQuery } from "../../router";
import { clusters, isShown } from "../../store/clusters";
import { PolicyEditor } from "./editor";
import css from "./policies.module.css";
import { describeScope, type Places, placeOf, placesOf } from "./places";
import { listDefaults, listRules } from "./rules";

type Entry = Schemas["PolicyEntry"];

const LIMIT = { limit: 500 };

/** Methods and paths of the policies of a kind. */
const policyPath = (rest: string) => `/api/v2/policy/${rest}` as PathOf<"delete">;

export function Policies() {
  const changes = useChanges();
  const [isWriting, setWriting] = useState(false);
  const policies = useLoad((signal) => get("/api/v2/policy", { signal }), changes.version);
  const projects = useLoad((signal) => get("/api/v1/org-unit/projects", { query: LIMIT, signal }), changes.version);
  const departments = useLoad((signal) => get("/api/v1/org-unit/departments", { query: LIMIT, signal }), changes.version);
  const places = placesOf(projects.value?.projects ?? [], departments.value?.departments ?? [], clusters.value);
  const entries = (policies.value?.policies ?? []).filter(({ meta }) => isShown(placeOf(meta, places)?.cluster));
  const canWrite = may("policies:create");
  return (
    <div class={parts.page}>
      <ViewTitle>Policies</ViewTitle>
      <Effective version={changes.version} projects={projects} />
      <Panel
        title="Policies of all scopes"
        actions={
          canWrite && (
            <button type="button" data-main onClick={() => setWriting(true)}>
              Write a policy
            </button>
          )
        }
      >
        <Problem error={changes.error ?? policies.error} />
        {policies.value && entries.length === 0 && (
          <Empty command="fairlead policy apply -f policy.yaml">There are no policies yet. Write one here, or:</Empty>
        )}
        {entries.length > 0 && (
          <Table
            label="Policies"
            columns={columnsOf(may("policies:delete"), places, changes)}
            rows={entries}
            keyOf={(entry) => entry.meta.id}
          />
        )}
      </Panel>
      {isWriting && <PolicyEditor changes={changes} onClose={() => setWriting(false)} />}
    </div>
  );
}

function columnsOf(canDelete: boolean, places: Places, changes: Changes): Column<Entry>[] {
  return [
    { title: "Name", cell: (entry) => <strong>{entry.meta.name}</strong> },
    { title: "For", cell: (entry) => entry.type },
    { title: "Scope", cell: (entry) => describeScope(entry.meta, places) },
    { title: "Changed", cell: (entry) => <Time at={entry.meta.updatedAt} /> },
    { title: "By", cell: (entry) => entry.meta.updatedBy },
    ...(canDelete ? [{ title: "", cell: (entry: Entry) => <Remove entry={entry} changes={changes} /> }] : []),
  ];
}

function Remove({ entry, changes }: { entry: Entry; changes: Changes }) {
  const rest = kinds.find((kind) => kind.title.replaceAll(" ", "").toLowerCase() === entry.type.toLowerCase())?.rest;
  if (!rest) return null;
  const { scope, projectId, departmentId, clusterId } = entry.meta;
  const where = { scope, projectId, departmentId, clusterId };
  return (
    <button
      type="button"
      aria-label={`Delete ${entry.meta.name} for ${entry.type}`}
      onClick={() => void changes.make(() => remove(policyPath(rest), { query: where }))}
    >
      Delete
    </button>
  );
}

/** What holds in one project for one kind. */
function Effective({ version, projects }: { version: string; projects: Loaded<Schemas["ProjectList"]> }) {
  const all = (projects.value?.projects ?? []).filter((one) => isShown(one.clusterId));
  const project = all.find((one) => one.name === query.value.get("project")) ?? all[0];
  const kind = kinds.find((one) => one.rest === query.value.get("kind")) ?? kinds[0];
  const key = project && kind ? `${version} ${project.id} ${kind.rest}` : "";
  const effective = useLoad(async (signal) => {
    if (!project || !kind) return undefined;
    const path = `/api/v2/policy/${kind.rest}/effective` as "/api/v2/policy/trainings/effective";
    return (await get(path, { query: { projectId: project.id }, signal })).effective;
  }, key);
  const rules = listRules(effective.value?.rules);
  const defaults = listDefaults(effective.value?.defaults);
  return (
    <Panel title="What holds in a project">
      <div class={parts.tools}>
        <select
          aria-label="Project"
          value={project?.name ?? ""}
          onChange={(event) => setQuery({ project: event.currentTarget.value })}
        >
          {all.map((one) => (
            <option key={one.id} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
        <select
          aria-label="Kind of workload"
          value={kind?.rest ?? ""}
          onChange={(event) => setQuery({ kind: event.currentTarget.value })}
        >
          {kinds.map((one) => (
            <option key={one.rest} value={one.rest}>
              {one.title}
            </option>
          ))}
        </select>
      </div>
      <Problem error={projects.error ?? effective.error} />
      {rules.length > 0 && (
        <Table
          label="Rules"
          columns={[
            { title: "Field", cell: (row) => <code>{row.field}</code> },
            { title: "Rule", cell: (row) => row.rule },
            { title: "From", cell: (row) => row.scope },
          ]}
          rows={rules}
          keyOf={(row) => `${row.field} ${row.rule}`}
        />
      )}
      {defaults.length > 0 && (
        <>
          <h3 class={css.subtitle}>Defaults</h3>
          <Table
            label="Defaults"
            columns={[
              { title: "Field", cell: (row) => <code>{row.field}</code> },
              { title: "Value", cell: (row) => row.value },
            ]}
            rows={defaults}
            keyOf={(row) => row.field}
          />
        </>
      )}
    </Panel>
  );
}
