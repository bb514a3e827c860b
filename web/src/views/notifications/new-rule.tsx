// Adding a rule: about what, when, and where the message goes.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import type { Changes } from "../../parts/change";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { CHANNELS, EVENTS } from "./events";

interface Props {
  projects: Schemas["ProjectView"][];
  changes: Changes;
  onMade: (rule: Schemas["NotificationRuleView"]) => void;
  onClose: () => void;
}

export function NewRule({ projects, changes, onMade, onClose }: Props) {
  const [channel, setChannel] = useState("webhook");
  const [target, setTarget] = useState("");
  const [projectId, setProjectId] = useState("");
  const [on, setOn] = useState<readonly string[]>(["failed"]);
  const [minutes, setMinutes] = useState("60");
  const [, , targetTitle = ""] = CHANNELS.find(([name]) => name === channel) ?? [];
  const toggle = (event: string): void =>
    setOn((last) => (last.includes(event) ? last.filter((one) => one !== event) : [...last, event]));
  const add = (event: SubmitEvent): void => {
    event.preventDefault();
    const body = { channel, target, on: [...on], projectId, waitingSeconds: Math.round(Number(minutes) * 60) };
    void changes
      .make(async () => onMade(await post("/api/v1/notification-rules", { body })))
      .then((isAdded) => isAdded && onClose());
  };
  return (
    <Dialog title="Add a rule" onClose={onClose}>
      <form onSubmit={add}>
        <label class={parts.field}>
          About
          <select value={projectId} onChange={(event) => setProjectId(event.currentTarget.value)}>
            <option value="">My own workloads</option>
            {projects.map((project) => (
              <option key={project.id} value={project.id}>
                Project {project.name}
              </option>
            ))}
          </select>
        </label>
        <fieldset class={parts.checks}>
          <legend>Send a message when</legend>
          {EVENTS.filter(([name]) => projectId || name !== "quota").map(([name, title]) => (
            <label key={name}>
              <input type="checkbox" checked={on.includes(name)} onChange={() => toggle(name)} /> {title}
            </label>
          ))}
        </fieldset>
        {on.includes("waiting") && (
          <label class={parts.field}>
            Minutes after which it is sent
            <input type="number" min="1" required value={minutes} onInput={(event) => setMinutes(event.currentTarget.value)} />
          </label>
        )}
        <label class={parts.field}>
          How
          <select value={channel} onChange={(event) => setChannel(event.currentTarget.value)}>
            {CHANNELS.map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label class={parts.field}>
          {targetTitle}
          <input required value={target} onInput={(event) => setTarget(event.currentTarget.value)} />
        </label>
        <Problem error={changes.error} />
        <div class={parts.buttons}>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button data-main disabled={on.length === 0}>
            Add
          </button>
        </div>
      </form>
    </Dialog>
  );
}
