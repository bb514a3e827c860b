// Creating a project with a quota of GPUs in each node pool.
import { useState } from "preact/hooks";
import { get, post, type Schemas } from "../../api/client";
import { useChanges } from "../../parts/change";
import { useLoad } from "../../parts/load";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import css from "./organization.module.css";

interface Props {
  department: Schemas["DepartmentView"];
  onClose: (isCreated: boolean) => void;
}

export function NewProject({ department, onClose }: Props) {
  const changes = useChanges();
  const [name, setName] = useState("");
  const [quotas, setQuotas] = useState<Record<string, string>>({});
  const pools = useLoad(async (signal) => (await get("/api/v1/node-pools", { signal })).nodepools, "");
  const create = (event: SubmitEvent): void => {
    event.preventDefault();
    const resources = (pools.value ?? []).map((pool) => ({
      nodePool: { id: pool.id, name: pool.name },
      gpu: { deserved: Number(quotas[pool.id] ?? 0) },
    }));
    const body = { name, parentId: department.id, clusterId: department.clusterId, resources };
    void changes
      .make(() => post("/api/v1/org-unit/projects", { body }))
      .then((isCreated) => isCreated && onClose(true));
  };
  return (
    <Dialog title={`New project in ${department.name}`} onClose={() => onClose(false)}>
      <form onSubmit={create}>
        <div class={css.fields}>
          <label>
            Name
            <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          {(pools.value ?? []).map((pool) => (
            <label key={pool.id}>
              Quota in {pool.name}
              <input
                type="number"
                min="0"
                step="0.1"
                value={quotas[pool.id] ?? "0"}
                onInput={(event) => setQuotas({ ...quotas, [pool.id]: event.currentTarget.value })}
              />
              GPUs
            </label>
          ))}
        </div>
        <p class={parts.quiet}>Beyond its quota a project borrows GPUs that nobody uses.</p>
        <Problem error={changes.error ?? pools.error} />
        <div class={parts.buttons}>
          <button type="button" onClick={() => onClose(false)}>
            Cancel
          </button>
          <button data-main>Create</button>
        </div>
      </form>
    </Dialog>
  );
}
