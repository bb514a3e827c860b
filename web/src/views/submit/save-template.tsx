// Keeping what a form says as a template of its project, so that others start from it.
import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { KindForm } from "../../api/forms";
import { useChanges } from "../../parts/change";
import type { JsonObject } from "../../parts/form/values";
import { tell } from "../../parts/notices";
import { css as parts, Dialog, Problem } from "../../parts/parts";

interface Props {
  form: KindForm;
  spec: JsonObject;
  project: { id: string; name: string };
}

export function SaveTemplate({ form, spec, project }: Props) {
  const changes = useChanges();
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState("");
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    const body = { meta: { name, scopeType: "project", scopeId: project.id }, spec };
    const path = `/api/v1/workload-templates/${form.rest}` as "/api/v1/workload-templates/trainings";
    void changes
      .make(() => post(path, { body }))
      .then((isSaved) => {
        if (!isSaved) return;
        setOpen(false);
        tell(`The template ${name} can be used in ${project.name}.`);
      });
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Save as a template
      </button>
      {isOpen && (
        <Dialog title="Save as a template" onClose={() => setOpen(false)}>
          <form onSubmit={save}>
            <p class={parts.quiet}>Everybody who submits to {project.name} can start from it.</p>
            <label class={parts.field}>
              Name of the template
              <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
            </label>
            <Problem error={changes.error} />
            <div class={parts.buttons}>
              <button type="button" onClick={() => setOpen(false)}>
                Cancel
              </button>
              <button data-main>Save</button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}
