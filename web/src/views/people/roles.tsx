// What each role allows; administrators create, change and delete custom ones.
import { useState } from "preact/hooks";
import { get, remove, type Schemas } from "../../api/client";
import { may } from "../../api/session";
import type { Changes } from "../../parts/change";
import { ConfirmButton } from "../../parts/confirm";
import { useLoad } from "../../parts/load";
import { css as parts, Panel } from "../../parts/parts";
import css from "./people.module.css";
import { RoleEditor } from "./role-editor";

type Role = Schemas["RoleView"];

export function Roles({ roles, changes }: { roles: Role[]; changes: Changes }) {
  const [edited, setEdited] = useState<Schemas["RoleWithSets"] | "new">();
  // Anything that reloads the view after a change.
  const reload = (): void => void changes.make(() => Promise.resolve());
  const withSets = useLoad(
    async (signal) => (may("roles:update") ? get("/api/v2/authorization/roles", { signal }) : []),
    changes.version,
  );
  const find = (role: Role) => withSets.value?.find((one) => one.id === role.id);
  return (
    <Panel
      title="What the roles allow"
      actions={
        may("roles:create") && (
          <button type="button" onClick={() => setEdited("new")}>
            New role
          </button>
        )
      }
    >
      {roles.map((role) => (
        <details key={role.id}>
          <summary>
            {role.name}
            {role.custom && " (custom)"}
          </summary>
          <p class={parts.quiet}>{role.description}</p>
          <ul class={css.permissions}>
            {role.permissions.map((permission) => (
              <li key={permission.resourceType}>
                {permission.displayName}: {permission.actions.join(", ")}
              </li>
            ))}
          </ul>
          {role.custom && (
            <div class={parts.actions}>
              {may("roles:update") && (
                <button type="button" aria-label={`Change the role ${role.name}`} onClick={() => setEdited(find(role))}>
                  Change
                </button>
              )}
              {may("roles:delete") && (
                <ConfirmButton
                  label="Delete"
                  name={`Delete the role ${role.name}`}
                  question={`Delete the role ${role.name}?`}
                  changes={changes}
                  act={() => remove("/api/v2/authorization/roles/{roleId}", { path: { roleId: String(role.id) } })}
                >
                  Nobody can be granted it any more. The server refuses this as long as somebody has it.
                </ConfirmButton>
              )}
            </div>
          )}
        </details>
      ))}
      {edited && (
        <RoleEditor role={edited === "new" ? undefined : edited} onClose={() => setEdited(undefined)} onSaved={reload} />
      )}
    </Panel>
  );
}
