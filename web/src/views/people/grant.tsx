// Granting a role to a person, a group or a service account, somewhere in the organization.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import type { Changes } from "../../parts/change";
import { Choice } from "../../parts/choice";
import { useLoad } from "../../parts/load";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { keyOfScope, loadScopes } from "../../parts/scopes";
import { isShown } from "../../store/clusters";

const SUBJECTS = { user: "Person", group: "Group", "service-account": "Service account" } as const;
type Subject = keyof typeof SUBJECTS;

interface Props {
  changes: Changes;
  roles: Schemas["RoleView"][];
  onClose: () => void;
}

export function GrantDialog({ changes, roles, onClose }: Props) {
  const [subject, setSubject] = useState<{ type: Subject; name: string }>({ type: "user", name: "" });
  const [role, setRole] = useState("");
  const [scope, setScope] = useState("");
  const scopes = useLoad(loadScopes, "");
  const grant = (event: SubmitEvent): void => {
    event.preventDefault();
    const chosen = scopes.value?.find((one) => keyOfScope(one) === scope);
    if (!chosen) return;
    const body: Schemas["RuleCreation"] = {
      subjectId: subject.name,
      subjectType: subject.type,
      roleId: Number(role),
      scopeId: chosen.id,
      scopeType: chosen.type,
    };
    void changes.make(() => post("/api/v1/authorization/access-rules", { body })).then((isDone) => isDone && onClose());
  };
  return (
    <Dialog title="Grant a role" onClose={onClose}>
      <form onSubmit={grant}>
        <label class={parts.field}>
          To
          <select
            value={subject.type}
            onChange={(event) => setSubject({ ...subject, type: event.currentTarget.value as Subject })}
          >
            {Object.entries(SUBJECTS).map(([type, title]) => (
              <option key={type} value={type}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label class={parts.field}>
          Name
          <input required value={subject.name} onInput={(event) => setSubject({ ...subject, name: event.currentTarget.value })} />
        </label>
        <Choice label="Role" value={role} onChange={setRole} options={roles.map((one) => [String(one.id), one.name])} />
        <Choice
          label="Where"
          value={scope}
          onChange={setScope}
          options={(scopes.value ?? []).filter((one) => isShown(one.cluster)).map((one) => [keyOfScope(one), one.title])}
        />
        <Problem error={changes.error ?? scopes.error} />
        <div class={parts.buttons}>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button data-main>Grant</button>
        </div>
      </form>
    </Dialog>
  );
}
