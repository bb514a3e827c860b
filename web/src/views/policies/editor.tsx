// Writing a policy as JSON. The server checks it before it is saved, and says which rule does not fit its field.
import { useState } from "preact/hooks";
import { ApiError, send } from "../../api/client";
import { kinds } from "../../api/kinds";
import type { Changes } from "../../parts/change";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import css from "./policies.module.css";

const EXAMPLE = `{
  "meta": { "name": "small-jobs", "scope": "tenant" },
  "policy": {
    "defaults": { "backoffLimit": 2 },
    "rules": { "compute": { "gpuDevicesRequest": { "max": 4 } } }
  }
}`;

export function PolicyEditor({ changes, onClose }: { changes: Changes; onClose: () => void }) {
  const [rest, setRest] = useState(kinds[0]?.rest ?? "");
  const [text, setText] = useState(EXAMPLE);
  const [checked, setChecked] = useState("");
  const put = async (validateOnly: boolean): Promise<void> => {
    await send("PUT", `/api/v2/policy/${rest}`, { query: { validateOnly }, body: parse(text) });
  };
  const check = (): void => void changes.make(() => put(true)).then((isValid) => setChecked(isValid ? text + rest : ""));
  const save = (): void => void changes.make(() => put(false)).then((isSaved) => isSaved && onClose());
  const isChecked = checked === text + rest;
  return (
    <Dialog title="Write a policy" onClose={onClose}>
      <label class={css.field}>
        For
        <select value={rest} onChange={(event) => setRest(event.currentTarget.value)}>
          {kinds.map((kind) => (
            <option key={kind.rest} value={kind.rest}>
              {kind.title}
            </option>
          ))}
        </select>
      </label>
      <label class={css.field}>
        Policy as JSON
        <textarea
          rows={14}
          spellcheck={false}
          class={css.text}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <p class={parts.quiet}>It replaces the policy of this scope. Running workloads are not affected.</p>
      <Problem error={changes.error} />
      {isChecked && <p role="status">The policy is valid.</p>}
      <div class={parts.buttons}>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" onClick={check}>
          Check
        </button>
        <button type="button" data-main disabled={!isChecked} onClick={save}>
          Save
        </button>
      </div>
    </Dialog>
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ApiError(0, `This is not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
