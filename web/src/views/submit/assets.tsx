// Choosing assets for a form: an environment, a compute resource, data sources. Choosing one fills the form.
import { useState } from "preact/hooks";
import { get } from "../../api/client";
import type { KindForm } from "../../api/forms";
import { layOut } from "../../parts/form/fields";
import { useLoad } from "../../parts/load";
import { Problem } from "../../parts/parts";
import { loadAssetKinds, specOfAsset } from "../library/asset-kinds";
import { type HeldAsset, type Secrets, withAsset } from "./asset-members";
import type { Draft, SetDraft } from "./submission";
import css from "./submit.module.css";

const NOUNS = [
  { path: "/api/v1/asset/environment", title: "Environment", isAdded: false },
  { path: "/api/v1/asset/compute", title: "Compute resource", isAdded: false },
  { path: "/api/v1/asset/datasource", title: "Data source", isAdded: true },
] as const;

type Noun = (typeof NOUNS)[number];

interface Props {
  form: KindForm;
  draft: Draft;
  setDraft: SetDraft;
}

export function Assets({ form, draft, setDraft }: Props) {
  const secrets = useLoad(loadSecrets, "");
  // Of a kind with roles, the process that an asset describes is that of its main role.
  const place = layOut(form.fields).roles.find((role) => role.field.isRequired)?.path ?? [];
  const take = (asset: HeldAsset): void =>
    setDraft((last) => ({ ...last, spec: withAsset(last.spec, place, asset, secrets.value ?? new Map()) }));
  return (
    <>
      {NOUNS.map((noun) => (
        <AssetChoice key={`${noun.path} ${draft.projectId}`} noun={noun} projectId={draft.projectId} onChoose={take} />
      ))}
    </>
  );
}

interface ChoiceProps {
  noun: Noun;
  projectId: string;
  onChoose: (asset: HeldAsset) => void;
}

/** Nothing if the project has no such assets. */
function AssetChoice({ noun, projectId, onChoose }: ChoiceProps) {
  const [chosen, setChosen] = useState("");
  const assets = useLoad((signal) => loadAssets(noun.path, projectId, signal), "");
  if (!assets.value?.length) return <Problem error={assets.error} />;
  const choose = (name: string): void => {
    const asset = assets.value?.find((one) => one.name === name);
    setChosen(noun.isAdded ? "" : name);
    if (asset) onChoose(asset);
  };
  return (
    <div class={css.choice}>
      <label for={noun.path}>{noun.title}</label>
      <select id={noun.path} value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{noun.isAdded ? "Add…" : "None"}</option>
        {assets.value.map((asset) => (
          <option key={asset.name} value={asset.name}>
            {asset.name}
          </option>
        ))}
      </select>
    </div>
  );
}

async function loadAssets(path: Noun["path"], projectId: string, signal: AbortSignal): Promise<HeldAsset[]> {
  if (!projectId) return [];
  const kinds = await loadAssetKinds();
  const { entries } = await get(path, { query: { complyToProject: projectId }, signal });
  return entries.flatMap((asset) => {
    const kind = kinds.find((one) => one.kind === asset.meta.kind);
    if (!kind) return [];
    const claimName = asset.clusterInfo?.resources[0]?.name ?? "";
    return [{ kind: kind.kind, name: asset.meta.name, spec: specOfAsset(kind, asset), claimName }];
  });
}

/** Whoever may not see credentials enters the names of secrets in the form. */
async function loadSecrets(signal: AbortSignal): Promise<Secrets> {
  const { entries } = await get("/api/v1/asset/credentials", { signal }).catch(() => ({ entries: [] }));
  return new Map(entries.map((one) => [one.meta.id, one.clusterInfo?.resources[0]?.name ?? ""]));
}
