// Writing or changing a policy as JSON. The server checks it before it is saved, and says which rule does not fit its field.
import { useState } from "preact/hooks";
import { ApiError, type Schemas } from "../../api/client";
import { kinds } from "../../api/kinds";
import type { Changes } from "../../parts/change";
import { tell } from "../../parts/notices";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import css from "./policies.module.css";
import { putPolicy, toBody } from "./stored";

const EXAMPLE = {
  meta: { name: "small-jobs", scope: "tenant" },
  policy: { defaults: { backoffLimit: 2 }, rules: { compute: { gpuDevicesRequest: { max: 4 } } } },
};

interface Props {
  changes: Changes;
  /** The policy to change, and its kind; none for a new one. */
  stored?: { rest: string; view: Schemas["PolicyView"] } | undefined;
  onClose: () => void;
}

export function PolicyEditor({ changes, stored, onClose }: Props) {
  const [rest, setRest] = useState(stored?.rest ?? kinds[0]?.rest ?? "");
  const [text, setText] = useState(() => JSON.stringify(stored ? toBody(stored.view) : EXAMPLE, null, 2));
  const [checked, setChecked] = useState("");
  const check = (): void =>
    void changes.make(() => putPolicy(rest, parse(text), true)).then((isValid) => setChecked(isValid ? text + rest : ""));
  const save = (): void =>
    void changes
      .make(async () => {
        await putPolicy(rest, parse(text));
        if (!stored) return;
        const before = toBody(stored.view);
        tell(`The policy ${stored.view.meta.name} is changed.`, () => changes.make(() => putPolicy(rest, before)));
      })
      .then((isSaved) => isSaved && onClose());
  const isChecked = checked === text + rest;
  return (
    <Dialog title={stored ? `Change the policy ${stored.view.meta.name}` : "Write a policy"} onClose={onClose}>
      {!stored && (
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
      )}
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
      <p class={parts.quiet}>
        {!stored && "It replaces the policy of this scope. "}Running workloads are not affected.
      </p>
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
