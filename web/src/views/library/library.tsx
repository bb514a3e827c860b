// Templates, assets and credentials: what workloads can be made from.
import { useState } from "preact/hooks";
import { get, type PathOf, remove, type Schemas } from "../../api/client";
import { findKind, titleOf } from "../../api/kinds";
import { may } from "../../api/session";
import { type Changes, useChanges } from "../../parts/change";
import { ConfirmButton } from "../../parts/confirm";
import { useLoad } from "../../parts/load";
import { css as parts, Empty, Panel, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { href, query, setQuery } from "../../router";
import { isShown } from "../../store/clusters";
import { AssetForm } from "./asset-form";
import { type AssetKind, kindsOfGroup, loadAssetKinds } from "./asset-kinds";
import { countUses, matches, scopeText } from "./uses";

type Asset = Schemas["AssetView"];
type Template = Schemas["TemplateView"];

const GROUPS = [
  {
    title: "Environments",
    one: "environment",
    path: "/api/v1/asset/environment",
    text: "An environment is an image with its command and variables.",
    command: "fairlead environment create NAME -f spec.json",
  },
  {
    title: "Compute",
    one: "compute asset",
    path: "/api/v1/asset/compute",
    text: "A compute asset is a size: GPUs, CPU and memory.",
    command: "fairlead compute create NAME -f spec.json",
  },
  {
    title: "Data sources",
    one: "data source",
    path: "/api/v1/asset/datasource",
    text: "A data source is a volume, a bucket or a repository.",
    command: "fairlead datasource create NAME --kind git -f spec.json",
  },
  {
    title: "Credentials",
    one: "credential",
    path: "/api/v1/asset/credentials",
    text: "A credential is a secret that workloads use without showing it.",
    command: "fairlead secret create NAME --from-literal KEY=VALUE",
  },
] as const;

type Group = (typeof GROUPS)[number];

export function Library() {
  const changes = useChanges();
  const kinds = useLoad(loadAssetKinds, "");
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
        <Assets
          key={group.path}
          group={group}
          kinds={kindsOfGroup(kinds.value ?? [], group.path.replace("/api/v1/asset/", ""))}
          changes={changes}
          search={search}
        />
      ))}
    </div>
  );
}

function Templates({ changes, search }: { changes: Changes; search: string }) {
  const templates = useLoad(
    (signal) => get("/api/v1/workload-templates", { query: { limit: 500 }, signal }),
    changes.version,
  );
  const shown = (templates.value?.entries ?? []).filter(({ meta }) => matches(meta, search) && isShown(meta.clusterId));
  return (
    <Panel title="Templates">
      <Problem error={templates.error} />
      {templates.value && shown.length === 0 && (
        <Empty command="fairlead template create NAME -f spec.json">A template is a prepared workload. Create one:</Empty>
      )}
      {shown.length > 0 && (
        <Table label="Templates" columns={templateColumns(changes)} rows={shown} keyOf={(one) => one.meta.id} />
      )}
    </Panel>
  );
}

function templateColumns(changes: Changes): Column<Template>[] {
  return [
    { title: "Name", width: "18%", cell: (one) => <strong>{one.meta.name}</strong> },
    { title: "For", width: "14%", cell: (one) => titleOf(one.meta.workloadType) },
    { title: "Scope", width: "16%", cell: (one) => scopeText(one.meta.scopeType) },
    { title: "Can run", width: "9%", cell: (one) => (one.runnable.isRunnable ? "yes" : (one.runnable.issue ?? "no")) },
    { title: "Created by", width: "11%", cell: (one) => one.meta.createdBy },
    { title: "Changed", width: "10%", cell: (one) => <Time at={one.meta.updatedAt} /> },
    { title: "Spec", width: "8%", cell: (one) => <Spec spec={one.spec} /> },
    { title: "", cell: (one) => <TemplateActions template={one} changes={changes} /> },
  ];
}

function TemplateActions({ template: { meta }, changes }: { template: Template; changes: Changes }) {
  const rest = findKind(meta.workloadType)?.rest;
  return (
    <div class={parts.actions}>
      {rest && (
        <a class={parts.button} aria-label={`Use ${meta.name}`} href={href(`/submit?kind=${rest}&template=${meta.id}`)}>
          Use
        </a>
      )}
      {rest && may("templates:delete") && (
        <ConfirmButton
          label="Delete"
          name={`Delete ${meta.name}`}
          question={`Delete ${meta.name}?`}
          changes={changes}
          act={() => remove(`/api/v1/workload-templates/${rest}/{templateId}` as PathOf<"delete">, { path: { templateId: meta.id } })}
        >
          Workloads can no longer be made from it; those that were go on. This cannot be undone.
        </ConfirmButton>
      )}
    </div>
  );
}

function Spec({ spec }: { spec: object }) {
  return (
    <details>
      <summary>Show</summary>
      <pre>{JSON.stringify(spec, null, 2)}</pre>
    </details>
  );
}

function Assets({ group, kinds, changes, search }: { group: Group; kinds: AssetKind[]; changes: Changes; search: string }) {
  const assets = useLoad(
    (signal) => get(group.path, { query: { usageInfo: true }, signal }),
    changes.version,
  );
  const shown = (assets.value?.entries ?? []).filter(({ meta }) => matches(meta, search) && isShown(meta.clusterId));
  return (
    <Panel title={group.title} actions={<NewAsset group={group} kinds={kinds} changes={changes} />}>
      <Problem error={assets.error} />
      {assets.value && shown.length === 0 && <Empty command={group.command}>{group.text} Create one:</Empty>}
      {shown.length > 0 && (
        <Table label={group.title} columns={assetColumns(kinds, changes)} rows={shown} keyOf={(one) => one.meta.id} />
      )}
    </Panel>
  );
}

function assetColumns(kinds: AssetKind[], changes: Changes): Column<Asset>[] {
  return [
    { title: "Name", width: "18%", cell: (asset) => <strong>{asset.meta.name}</strong> },
    { title: "Kind", width: "14%", cell: (asset) => kinds.find((one) => one.kind === asset.meta.kind)?.title ?? asset.meta.kind },
    { title: "Scope", width: "16%", cell: (asset) => scopeText(asset.meta.scope, asset.meta.projectName) },
    { title: "Used by", width: "9%", isNumber: true, cell: (asset) => countUses(asset.usedBy) },
    { title: "Created by", width: "11%", cell: (asset) => asset.meta.createdBy },
    { title: "Changed", width: "10%", cell: (asset) => <Time at={asset.meta.updatedAt} /> },
    { title: "Spec", width: "8%", cell: (asset) => <Spec spec={asset.spec} /> },
    { title: "", cell: (asset) => <AssetActions kinds={kinds} asset={asset} changes={changes} /> },
  ];
}

interface EditProps {
  kind: AssetKind;
  asset: Asset;
  changes: Changes;
}

function AssetActions({ kinds, asset, changes }: Omit<EditProps, "kind"> & { kinds: AssetKind[] }) {
  const kind = kinds.find((one) => one.kind === asset.meta.kind);
  if (!kind) return null;
  return (
    <div class={parts.actions}>
      <EditAsset kind={kind} asset={asset} changes={changes} />
      <Remove kind={kind} asset={asset} changes={changes} />
    </div>
  );
}

/** Reloads the lists after a form has saved something. */
const reload = (changes: Changes): void => void changes.make(() => Promise.resolve());

function NewAsset({ group, kinds, changes }: { group: Group; kinds: AssetKind[]; changes: Changes }) {
  const [isOpen, setOpen] = useState(false);
  const allowed = kinds.filter((kind) => may(`${kind.resource}:create`));
  if (allowed.length === 0) return null;
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        New {group.one}
      </button>
      {isOpen && (
        <AssetForm
          title={`New ${group.one}`}
          kinds={allowed}
          onClose={() => setOpen(false)}
          onSaved={() => reload(changes)}
        />
      )}
    </>
  );
}

function EditAsset({ kind, asset, changes }: EditProps) {
  const [isOpen, setOpen] = useState(false);
  if (!may(`${kind.resource}:update`)) return null;
  return (
    <>
      <button type="button" aria-label={`Change ${asset.meta.name}`} onClick={() => setOpen(true)}>
        Change
      </button>
      {isOpen && (
        <AssetForm
          title={`Change ${asset.meta.name}`}
          kinds={[kind]}
          asset={asset}
          onClose={() => setOpen(false)}
          onSaved={() => reload(changes)}
        />
      )}
    </>
  );
}

function Remove({ kind, asset, changes }: EditProps) {
  if (!may(`${kind.resource}:delete`)) return null;
  const path = `/api/v1/asset/${kind.path}/{AssetId}` as PathOf<"delete">;
  return (
    <ConfirmButton
      label="Delete"
      name={`Delete ${asset.meta.name}`}
      question={`Delete ${asset.meta.name}?`}
      changes={changes}
      act={() => remove(path, { path: { AssetId: asset.meta.id } })}
      obstacle={countUses(asset.usedBy) > 0 ? "Workloads or templates use it" : undefined}
    >
      Workloads can no longer be made from it. This cannot be undone.
    </ConfirmButton>
  );
}
