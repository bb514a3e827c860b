// Templates, assets and credentials: what workloads can be made from.
import { get, type PathOf, remove, type Schemas } from "../../api/client";
import { type Changes, useChanges } from "../../parts/change";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, Panel, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { query, setQuery } from "../../router";
import { isShown } from "../../store/clusters";
import { countUses, matches, scopeText } from "./uses";

type Asset = Schemas["AssetView"];
type Template = Schemas["TemplateView"];

const GROUPS = [
  {
    title: "Environments",
    path: "/api/v1/asset/environment",
    text: "An environment is an image with its command and variables.",
    command: "fairlead environment create NAME -f spec.json",
  },
  {
    title: "Compute",
    path: "/api/v1/asset/compute",
    text: "A compute asset is a size: GPUs, CPU and memory.",
    command: "fairlead compute create NAME -f spec.json",
  },
  {
    title: "Data sources",
    path: "/api/v1/asset/datasource",
    text: "A data source is a volume, a bucket or a repository.",
    command: "fairlead datasource create NAME --kind git -f spec.json",
  },
  {
    title: "Credentials",
    path: "/api/v1/asset/credentials",
    text: "A credential is a secret that workloads use without showing it.",
    command: "fairlead secret create NAME --from-literal KEY=VALUE",
  },
] as const;

export function Library() {
  const changes = useChanges();
  const search = query.value.get("q") ?? "";
  return (
    <div class={parts.page}>
      <ViewTitle>Library</ViewTitle>
      <div class={parts.tools}>
        <input
          type="search"
          aria-label="Search templates and assets"
          placeholder="Search (press /)"
          value={search}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
      </div>
      <Problem error={changes.error} />
      <Templates changes={changes} search={search} />
      {GROUPS.map((group) => (
        <Assets key={group.path} group={group} changes={changes} search={search} />
      ))}
    </div>
  );
}

function Templates({ changes, search }: { changes: Changes; search: string }) {
  const templates = useLoad(
    (signal) => get("/api/v1/workload-templates", { query: { limit: 500 }, signal }),
    changes.version,
  );
  const shown = (templates.value?.entries ?? []).filter((one) => matches(one.meta, search));
  return (
    <Panel title="Templates">
      <Problem error={templates.error} />
      {templates.value && shown.length === 0 && (
        <Empty command="fairlead template create NAME -f spec.json">A template is a prepared workload. Create one:</Empty>
      )}
      {shown.length > 0 && (
        <Table label="Templates" columns={TEMPLATE_COLUMNS} rows={shown} keyOf={(one) => one.meta.id} />
      )}
    </Panel>
  );
}

const TEMPLATE_COLUMNS: Column<Template>[] = [
  { title: "Name", cell: (one) => <strong>{one.meta.name}</strong> },
  { title: "For", cell: (one) => one.meta.workloadType },
  { title: "Scope", cell: (one) => scopeText(one.meta.scopeType) },
  { title: "Can run", cell: (one) => (one.runnable.isRunnable ? "yes" : (one.runnable.issue ?? "no")) },
  { title: "Created by", cell: (one) => one.meta.createdBy },
  { title: "Changed", cell: (one) => <Time at={one.meta.updatedAt} /> },
  { title: "Spec", cell: (one) => <Spec spec={one.spec} /> },
];

function Spec({ spec }: { spec: object }) {
  return (
    <details>
      <summary>Show</summary>
      <pre>{JSON.stringify(spec, null, 2)}</pre>
    </details>
  );
}

function Assets({ group, changes, search }: { group: (typeof GROUPS)[number]; changes: Changes; search: string }) {
  const assets = useLoad(
    (signal) => get(group.path, { query: { usageInfo: true }, signal }),
    changes.version,
  );
  const shown = (assets.value?.entries ?? []).filter(({ meta }) => matches(meta, search) && isShown(meta.clusterId));
  return (
    <Panel title={group.title}>
      <Problem error={assets.error} />
      {assets.value && shown.length === 0 && <Empty command={group.command}>{group.text} Create one:</Empty>}
      {shown.length > 0 && (
        <Table label={group.title} columns={assetColumns(group.path, changes)} rows={shown} keyOf={(one) => one.meta.id} />
      )}
    </Panel>
  );
}

function assetColumns(path: string, changes: Changes): Column<Asset>[] {
  return [
    { title: "Name", cell: (asset) => <strong>{asset.meta.name}</strong> },
    { title: "Kind", cell: (asset) => asset.meta.kind },
    { title: "Scope", cell: (asset) => scopeText(asset.meta.scope, asset.meta.projectName) },
    { title: "Used by", isNumber: true, cell: (asset) => countUses(asset.usedBy) },
    { title: "Created by", cell: (asset) => asset.meta.createdBy },
    { title: "Changed", cell: (asset) => <Time at={asset.meta.updatedAt} /> },
    { title: "Spec", cell: (asset) => <Spec spec={asset.spec} /> },
    { title: "", cell: (asset) => <Remove path={path} asset={asset} changes={changes} /> },
  ];
}

function Remove({ path, asset, changes }: { path: string; asset: Asset; changes: Changes }) {
  const uses = countUses(asset.usedBy);
  const last = path.split("/").at(-1) === asset.meta.kind ? path : `${path}/${asset.meta.kind}`;
  return (
    <button
      type="button"
      aria-label={`Delete ${asset.meta.name}`}
      disabled={uses > 0}
      title={uses > 0 ? "Workloads or templates use it" : undefined}
      onClick={() =>
        void changes.make(() => remove(`${last}/{AssetId}` as PathOf<"delete">, { path: { AssetId: asset.meta.id } }))
      }
    >
      Delete
    </button>
  );
}
