// Changing a workload while it runs: the members of its spec that its kind lets be changed, and nothing else.
import { useState } from "preact/hooks";
import { type ApiError, send } from "../../api/client";
import { loadForm } from "../../api/forms";
import type { Kind } from "../../api/kinds";
import { type FormState, SpecFields } from "../../parts/form/form";
import { isObject, type JsonObject, withValue } from "../../parts/form/values";
import { asApiError, useLoad } from "../../parts/load";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { problemsOf, specOf } from "../submit/submission";

interface Props {
  id: string;
  kind: Kind;
  onClose: () => void;
}

export function Change({ id, kind, onClose }: Props) {
  const path = `/api/v1/workloads/${kind.rest}/{workloadId}`;
  const loaded = useLoad(async (signal) => {
    const form = await loadForm(kind.rest);
    const response = await send("GET", path, { path: { workloadId: id }, signal });
    const fields = form.fields.filter((field) => kind.canChange.includes(field.name));
    return { fields, spec: specOf(form, (await response.json()) as JsonObject) };
  }, id);
  const [changed, setChanged] = useState<JsonObject>();
  const [error, setError] = useState<ApiError>();
  if (!loaded.value) return null;
  const { fields, spec } = loaded.value;
  const root = changed ?? spec;
  const form: FormState = {
    root,
    set: (at, value) => {
      setError(undefined);
      setChanged(withValue(root, at, value));
    },
    problems: problemsOf(error?.issues ?? []),
    ruleOf: () => undefined,
    namesOf: () => [],
  };
  const save = async (): Promise<void> => {
    try {
      await send("PATCH", path, { path: { workloadId: id }, body: { spec: changesOf(spec, root, kind.canChange) } });
      onClose();
    } catch (caught) {
      setError(asApiError(caught));
    }
  };
  return (
    <Dialog title={`Change this ${kind.noun}`} onClose={onClose}>
      <p class={parts.quiet}>It is changed while it runs. If its pods have to be new, they replace the old ones when they are ready.</p>
      <SpecFields form={form} fields={fields} search="" />
      <Problem error={error} />
      <div class={parts.buttons}>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" data-main disabled={!changed} onClick={() => void save()}>
          Change
        </button>
      </div>
    </Dialog>
  );
}

/** The members that are not what they were; null takes a value away. */
export function changesOf(before: JsonObject, after: JsonObject, names: readonly string[]): JsonObject {
  const changes: JsonObject = {};
  for (const name of names) {
    const [old, next] = [before[name], after[name]];
    if (JSON.stringify(old) === JSON.stringify(next)) continue;
    if (next === undefined) changes[name] = null;
    else if (isObject(old) && isObject(next)) changes[name] = changesOf(old, next, keysOf(old, next));
    else changes[name] = next;
  }
  return changes;
}

function keysOf(...objects: JsonObject[]): string[] {
  return [...new Set(objects.flatMap(Object.keys))];
}
