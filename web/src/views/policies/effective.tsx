// What the policies of all scopes make together in one project for one kind, with the origin of every rule and default.
import { get, type Schemas } from "../../api/client";
import { kinds } from "../../api/kinds";
import { type Loaded, useLoad } from "../../parts/load";
import { css as parts, Empty, Panel, Problem } from "../../parts/parts";
import { Table } from "../../parts/table";
import { query, setQuery } from "../../router";
import { isShown } from "../../store/clusters";
import css from "./policies.module.css";
import { aroundProject, describeScope, type Places } from "./places";
import { imposedIds, listDefaults, listRules, sourcesOfDefault } from "./rules";
import { isFor, loadPolicy } from "./stored";

interface Props {
  version: string;
  projects: Loaded<Schemas["ProjectList"]>;
  policies: readonly Schemas["PolicyEntry"][];
  places: Places;
}

export function Effective({ version, projects, policies, places }: Props) {
  const all = (projects.value?.projects ?? []).filter((one) => isShown(one.clusterId));
  const project = all.find((one) => one.name === query.value.get("project")) ?? all[0];
  const kind = kinds.find((one) => one.rest === query.value.get("kind")) ?? kinds[0];
  const key = project && kind ? `${project.id} ${kind.rest}` : "";
  const effective = useLoad(async (signal) => {
    if (!project || !kind) return undefined;
    const path = `/api/v2/policy/${kind.rest}/effective` as "/api/v2/policy/trainings/effective";
    return (await get(path, { query: { projectId: project.id }, signal })).effective;
  }, `${key} ${version}`);
  const around = useLoad(async (signal) => {
    if (!project || !kind) return [];
    const scopes = policies.filter((one) => isFor(one, kind)).map((one) => one.meta);
    const load = async (scope: Schemas["PolicyMetaView"]) => {
      const { policy } = await loadPolicy(kind.rest, scope, signal);
      return { scope, defaults: policy.defaults };
    };
    return Promise.all(aroundProject(scopes, project).map(load));
    // By the list as it is: until it is loaded again after a deletion, it names what is there no more.
  }, `${key} ${policies.map(({ meta }) => `${meta.id} ${meta.updatedAt}`).join()}`);
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
      <Problem error={projects.error ?? effective.error ?? around.error} />
      {projects.value && !project && (
        <Empty command="fairlead project create NAME">Policies hold in projects. Create one:</Empty>
      )}
      <Rules rules={effective.value?.rules} places={places} />
      <Defaults defaults={effective.value?.defaults} around={around.value ?? []} places={places} />
      <Imposed ids={imposedIds(effective.value?.imposedAssets)} />
    </Panel>
  );
}

function Rules({ rules, places }: { rules: unknown; places: Places }) {
  const rows = listRules(rules);
  if (rows.length === 0) return null;
  return (
    <Table
      label="Rules"
      columns={[
        { title: "Field", width: "45%", cell: (row) => <code>{row.field}</code> },
        { title: "Rule", width: "25%", cell: (row) => row.rule },
        { title: "From", cell: (row) => describeScope(row.source, places) },
      ]}
      rows={rows}
      keyOf={(row) => `${row.field} ${row.rule}`}
    />
  );
}

interface DefaultsProps {
  defaults: unknown;
  around: readonly { scope: Schemas["PolicyMetaView"]; defaults: unknown }[];
  places: Places;
}

function Defaults({ defaults, around, places }: DefaultsProps) {
  const rows = listDefaults(defaults);
  if (rows.length === 0) return null;
  return (
    <>
      <h3 class={css.subtitle}>Defaults</h3>
      <Table
        label="Defaults"
        columns={[
          { title: "Field", width: "45%", cell: (row) => <code>{row.field}</code> },
          { title: "Value", width: "25%", cell: (row) => row.value },
          {
            title: "From",
            // A policy that the user may not read has no name here.
            cell: (row) => sourcesOfDefault(row, around).map((one) => describeScope(one, places)).join(", ") || "a wider scope",
          },
        ]}
        rows={rows}
        keyOf={(row) => row.field}
      />
    </>
  );
}

/** Data sources that every workload of the project gets. */
function Imposed({ ids }: { ids: readonly string[] }) {
  const assets = useLoad(
    async (signal) => (ids.length > 0 ? (await get("/api/v1/asset/datasource", { signal })).entries : []),
    ids.join(),
  );
  if (ids.length === 0) return null;
  const names = new Map((assets.value ?? []).map(({ meta }) => [meta.id, meta.name]));
  return (
    <>
      <h3 class={css.subtitle}>Data sources of every workload</h3>
      <p>{ids.map((id) => names.get(id) ?? id).join(", ")}</p>
    </>
  );
}
