// A custom role: its name, and the permission sets that it is made of.
import { useState } from "preact/hooks";
import { get, post, put, type Schemas } from "../../api/client";
import { useChanges } from "../../parts/change";
import { useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import css from "./people.module.css";

interface Props {
  /** The role to change; none for a new one. */
  role?: Schemas["RoleWithSets"] | undefined;
  onClose: () => void;
  onSaved: () => void;
}

export function RoleEditor({ role, onClose, onSaved }: Props) {
  const changes = useChanges();
  const [name, setName] = useState(role?.name ?? "");
  const [description, setDescription] = useState(role?.description ?? "");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set((role?.permissionSets ?? []).map((one) => one.id)));
  const [search, setSearch] = useState("");
  const sets = useLoad((signal) => get("/api/v1/authorization/permission-sets", { signal }), "");
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const body = { name, description, permissionSets: [...chosen].map((id) => ({ id })) };
    const path = { roleId: String(role?.id ?? "") };
    const send = () =>
      role
        ? put("/api/v2/authorization/roles/{roleId}", { path, body })
        : post("/api/v2/authorization/roles", { body });
    void changes.make(send).then((isSaved) => {
      if (!isSaved) return;
      tell(role ? `The role ${name} is changed.` : `The role ${name} can be granted now.`);
      onSaved();
      onClose();
    });
  };
  const shown = (sets.value ?? []).filter((one) =>
    `${one.name} ${one.description}`.toLowerCase().includes(search.toLowerCase()),
  );
  return (
    <Dialog title={role ? `Change the role ${role.name}` : "New role"} onClose={onClose}>
      <form onSubmit={save}>
        <label class={parts.field}>
          Name
          <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label class={parts.field}>
          Description
          <input required value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
        </label>
        <fieldset class={css.sets}>
          <legend>What it allows: {chosen.size} chosen</legend>
          <input
            type="search"
            aria-label="Search permission sets"
            placeholder="Search permission sets"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
          <ul tabIndex={0} aria-label="Permission sets">
            {shown.map((one) => (
              <li key={one.id}>
                <label>
                  <input type="checkbox" checked={chosen.has(one.id)} onChange={() => toggle(one.id)} />
                  <span>
                    {one.name} <span class={parts.quiet}>{one.description}</span>
                  </span>
                </label>
              </li>
            ))}
          </ul>
        </fieldset>
        <Problem error={changes.error ?? sets.error} />
        <div class={parts.buttons}>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button data-main disabled={chosen.size === 0}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
