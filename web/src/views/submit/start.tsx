// Where a form starts from: a project, a template, or a file that somebody drops in.
import { useEffect, useState } from "preact/hooks";
import type { ApiError, Schemas } from "../../api/client";
import { type KindForm, loadForm } from "../../api/forms";
import { asApiError, useLoad } from "../../parts/load";
import { css as parts, Problem } from "../../parts/parts";
import { count } from "../../parts/texts";
import { setQuery } from "../../router";
import { Assets } from "./assets";
import { loadTemplates, readWorkloads } from "./sources";
import css from "./submit.module.css";
import { type Draft, type SetDraft, specOf } from "./submission";

interface Props {
  form: KindForm;
  draft: Draft;
  setDraft: SetDraft;
  projects: Schemas["ProjectView"][];
}

export function Start({ form, draft, setDraft, projects }: Props) {
  const templates = useLoad((signal) => loadTemplates(form.title, draft.projectId, signal), form.title + draft.projectId);
  return (
    <>
      <div class={css.choice}>
        <label for="project">Project</label>
        <select
          id="project"
          value={draft.projectId}
          onChange={({ currentTarget: { value } }) => setDraft((last) => ({ ...last, projectId: value, templateId: "" }))}
        >
          {projects.map((project) => (
            <option key={project.id} value={project.id}>
              {project.name}
            </option>
          ))}
        </select>
      </div>
      <div class={css.choice}>
        <label for="template">Template</label>
        <select
          id="template"
          value={draft.templateId}
          onChange={({ currentTarget: { value } }) => setDraft((last) => ({ ...last, templateId: value }))}
        >
          <option value="">None</option>
          {(templates.value ?? []).map((template) => (
            <option key={template.meta.id} value={template.meta.id}>
              {template.meta.name}
            </option>
          ))}
        </select>
        <p class={parts.quiet}>It sets what the form leaves empty.</p>
      </div>
      <Assets form={form} draft={draft} setDraft={setDraft} />
      <FileInput form={form} draft={draft} setDraft={setDraft} projects={projects} />
    </>
  );
}

/** A file with a workload in any dialect fills the form; of several workloads in it, one is chosen. */
function FileInput({ form, draft, setDraft, projects }: Props) {
  const [found, setFound] = useState<Schemas["ConvertedWorkload"][]>([]);
  const [error, setError] = useState<ApiError>();
  const [isOver, setOver] = useState(false);
  const take = async (workload: Schemas["ConvertedWorkload"]): Promise<void> => {
    const own = await loadForm(workload.kind);
    const project = projects.find((one) => one.name === workload.project);
    const spec = specOf(own, workload.request);
    setDraft({ name: workload.name, projectId: project?.id ?? draft.projectId, templateId: "", spec });
    setQuery({ kind: workload.kind });
  };
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    setError(undefined);
    try {
      const workloads = await readWorkloads(await file.text(), form.rest);
      setFound(workloads);
      if (workloads[0]) await take(workloads[0]);
    } catch (caught) {
      setError(asApiError(caught));
    }
  };
  useEffect(() => {
    const over = (event: DragEvent): void => {
      event.preventDefault();
      setOver(event.type === "dragover");
    };
    const drop = (event: DragEvent): void => {
      over(event);
      void read(event.dataTransfer?.files[0]);
    };
    const events = { dragover: over, dragleave: over, drop } as const;
    for (const [name, handler] of Object.entries(events)) addEventListener(name as "drop", handler);
    return () => {
      for (const [name, handler] of Object.entries(events)) removeEventListener(name as "drop", handler);
    };
  });
  return (
    <div class={css.file} data-over={isOver || undefined}>
      <div class={css.drop}>
        <input
          id="file"
          class={parts.hidden}
          type="file"
          onChange={(event) => void read(event.currentTarget.files?.[0])}
        />
        <label for="file">Open a file</label>
        <p class={parts.quiet}>
          or drop one anywhere on this page: workload YAML, a REST request, a Slurm script, or a job of Kubernetes,
          dstack or SkyPilot.
        </p>
      </div>
      <Problem error={error} />
      {found.length > 1 && (
        <div class={parts.choices} role="group" aria-label="Workloads in the file">
          <span>{count(found.length, "workload")} in the file:</span>
          {found.map((one) => (
            <button key={one.name} type="button" onClick={() => void take(one)}>
              {one.name}
            </button>
          ))}
        </div>
      )}
      {found.flatMap((one) => [...one.losses, ...one.remarks]).map((note) => (
        <p key={note} class={css.note}>
          Not taken over: {note}
        </p>
      ))}
    </div>
  );
}
