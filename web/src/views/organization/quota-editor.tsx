// Changing the quota of GPUs of a project or department, with what it would do to everybody shown before it is saved.
import { useState } from "preact/hooks";
import { type ApiError, patch, post, type Schemas } from "../../api/client";
import { asApiError } from "../../parts/load";
import { tell } from "../../parts/notices";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { count } from "../../parts/texts";
import { Consequences } from "../workloads/consequences";
import css from "./organization.module.css";
import { quotaOf, quotaText } from "./quotas";

interface Props {
  owner: Schemas["ProjectView"] | Schemas["DepartmentView"];
  type: "project" | "department";
  onClose: () => void;
  /** Called after the change, and after it was taken back. */
  onSaved: () => void;
}

export function QuotaEditor({ owner, type, onClose, onSaved }: Props) {
  const [quotas, setQuotas] = useState<Record<string, string>>({});
  const [preview, setPreview] = useState<Schemas["WhatIfAnswer"]>();
  const [error, setError] = useState<ApiError>();
  const changed = owner.resources.filter((pool) => pool.nodePool.id in quotas);
  const change = (id: string, text: string): void => {
    setPreview(undefined);
    setQuotas((last) => ({ ...last, [id]: text }));
  };
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setError(undefined);
    try {
      await work();
    } catch (caught) {
      setError(asApiError(caught));
    }
  };
  const ask = async (): Promise<void> => {
    const changes = changed.map((pool) => ({
      change: "share" as const,
      // Names are ambiguous: a department may be called as its project is.
      queue: `${type}-${owner.id}`,
      field: "quota" as const,
      resource: "gpu" as const,
      value: quotaOf(quotas[pool.nodePool.id] ?? ""),
      nodePool: pool.nodePool.name,
    }));
    setPreview(await post("/api/v1/scheduling/what-if", { body: { changes } }));
  };
  const save = async (): Promise<void> => {
    const store = (body: object[]): Promise<unknown> =>
      type === "project"
        ? patch("/api/v1/org-unit/projects/{projectId}/resources", { path: { projectId: owner.id }, body })
        : patch("/api/v1/org-unit/departments/{departmentId}/resources", { path: { departmentId: owner.id }, body });
    await store(
      changed.map((pool) => ({
        nodePool: pool.nodePool,
        gpu: { ...pool.gpu, deserved: quotaOf(quotas[pool.nodePool.id] ?? "") },
      })),
    );
    const before = changed.map((pool) => ({ nodePool: pool.nodePool, gpu: pool.gpu }));
    tell(`The quota of ${owner.name} is changed.`, async () => {
      await store(before);
      onSaved();
    });
    onSaved();
    onClose();
  };
  return (
    <Dialog title={`GPU quota of ${owner.name}`} onClose={onClose}>
      <div class={css.fields}>
        {owner.resources.map((pool) => (
          <label key={pool.nodePool.id}>
            {pool.nodePool.name}
            <input
              type="number"
              min="0"
              step="0.1"
              placeholder="unlimited"
              value={quotas[pool.nodePool.id] ?? quotaText(pool.gpu.deserved)}
              onInput={(event) => change(pool.nodePool.id, event.currentTarget.value)}
            />
            GPUs
          </label>
        ))}
      </div>
      {preview && (
        <div role="status">
          <Consequences starts={preview.starts} effects={preview.effects} />
          <p>
            {count(preview.waitingBefore, "workload")} waiting now, {preview.waitingAfter} then.
          </p>
        </div>
      )}
      <Problem error={error} />
      <div class={parts.buttons}>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" disabled={changed.length === 0} onClick={() => void attempt(ask)}>
          Preview
        </button>
        <button type="button" data-main disabled={!preview} onClick={() => void attempt(save)}>
          Save
        </button>
      </div>
    </Dialog>
  );
}
