// Creating or changing an asset by the form of its kind.
import { useState } from "preact/hooks";
import { get, type Schemas, send } from "../../api/client";
import { useChanges } from "../../parts/change";
import { Choice } from "../../parts/choice";
import { FieldInput, type FormState } from "../../parts/form/form";
import { type JsonObject, withValue } from "../../parts/form/values";
import { useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { keyOfScope, loadScopes } from "../../parts/scopes";
import { isShown } from "../../store/clusters";
import { problemsOf } from "../submit/submission";
import { type AssetKind, scopeMembers, specOfAsset, withCredentials } from "./asset-kinds";
import css from "./library.module.css";

interface Props {
  title: string;
  /** The kinds to choose from; one if an asset is changed. */
  kinds: AssetKind[];
  asset?: Schemas["AssetView"] | undefined;
  onClose: () => void;
  onSaved: () => void;
}

export function AssetForm({ title, kinds, asset, onClose, onSaved }: Props) {
  const changes = useChanges();
  const [path, setPath] = useState(kinds[0]?.path ?? "");
  const kind = kinds.find((one) => one.path === path);
  const [name, setName] = useState(asset?.meta.name ?? "");
  const [description, setDescription] = useState(asset?.meta.description ?? "");
  const [scope, setScope] = useState("");
  const [spec, setSpec] = useState<JsonObject>(() => (asset && kind ? specOfAsset(kind, asset) : {}));
  const scopes = useLoad(async (signal) => (asset ? [] : loadScopes(signal)), "");
  const credentials = useLoad(
    // Whoever may not see credentials types an id.
    (signal) => get("/api/v1/asset/credentials", { signal }).then((answer) => answer.entries.map((one) => one.meta), () => []),
    "",
  );
  const form: FormState = {
    root: spec,
    set: (at, value) => setSpec((last) => withValue(last, at, value)),
    problems: problemsOf(changes.error?.issues ?? []),
    ruleOf: () => undefined,
    namesOf: () => [],
  };
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const chosen = scopes.value?.find((one) => keyOfScope(one) === scope);
    const meta = { name, ...(description ? { description } : {}), ...(chosen && !asset ? scopeMembers(chosen) : {}) };
    const at = `/api/v1/asset/${path}`;
    const request = () =>
      asset
        ? send("PUT", `${at}/{AssetId}`, { path: { AssetId: asset.meta.id }, body: { meta, spec } })
        : send("POST", at, { body: { meta, spec } });
    void changes.make(request).then((isSaved) => {
      if (!isSaved) return;
      tell(asset ? `${name} is changed.` : `${name} can be used in workloads now.`);
      onSaved();
      onClose();
    });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={save}>
        {kinds.length > 1 && (
          <Choice
            label="Kind"
            value={path}
            onChange={(value) => {
              setPath(value);
              setSpec({});
            }}
            options={kinds.map((one) => [one.path, one.title])}
          />
        )}
        <label class={parts.field}>
          Name
          <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label class={parts.field}>
          Description
          <input value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
        </label>
        {!asset && (
          <Choice
            label="Where it can be used"
            value={scope}
            onChange={setScope}
            options={(scopes.value ?? []).filter((one) => isShown(one.cluster)).map((one) => [keyOfScope(one), one.title])}
          />
        )}
        {asset && kind?.resource === "credentials" && (
          <p class={parts.quiet}>Secret values are not shown. Enter them again, or the server keeps the ones that it has.</p>
        )}
        <div class={css.fields}>
          {withCredentials(kind?.fields ?? [], credentials.value ?? []).map((field) => (
            <FieldInput key={`${path} ${field.name}`} form={form} field={field} path={[field.name]} />
          ))}
        </div>
        <Problem error={changes.error ?? scopes.error} />
        <div class={parts.buttons}>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button data-main>{asset ? "Save" : "Create"}</button>
        </div>
      </form>
    </Dialog>
  );
}
