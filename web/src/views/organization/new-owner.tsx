// Creating a department, or a project in one, with a quota of GPUs in each node pool.
import { useState } from "preact/hooks";
import { get, post, type Schemas } from "../../api/client";
import { useChanges } from "../../parts/change";
import { useLoad } from "../../parts/load";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { chosenCluster, clusters } from "../../store/clusters";
import css from "./organization.module.css";

interface Props {
  /** Where a project is created; without it a department is. */
  department?: Schemas["DepartmentView"];
  onClose: (isCreated: boolean) => void;
}

export function NewOwner({ department, onClose }: Props) {
  const changes = useChanges();
  const [name, setName] = useState("");
  const [quotas, setQuotas] = useState<Record<string, string>>({});
  const pools = useLoad(async (signal) => (await get("/api/v1/node-pools", { signal })).nodepools, "");
  const clusterId = department?.clusterId ?? chosenCluster.value?.uuid ?? clusters.value[0]?.uuid ?? "";
  const own = (pools.value ?? []).filter((pool) => pool.clusterId === clusterId);
  const create = (event: SubmitEvent): void => {
    event.preventDefault();
    const resources = own.map((pool) => ({
      nodePool: { id: pool.id, name: pool.name },
      gpu: { deserved: Number(quotas[pool.id] ?? 0) },
    }));
    const body = { name, clusterId, resources };
    const made = () =>
      department
        ? post("/api/v1/org-unit/projects", { body: { ...body, parentId: department.id } })
        : post("/api/v1/org-unit/departments", { body });
    void changes.make(made).then((isCreated) => isCreated && onClose(true));
  };
  return (
    <Dialog title={department ? `New project in ${department.name}` : "New department"} onClose={() => onClose(false)}>
      <form onSubmit={create}>
        <div class={css.fields}>
          <label>
            Name
            <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          {own.map((pool) => (
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
        <p class={parts.quiet}>Beyond its quota it borrows GPUs that nobody uses.</p>
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
