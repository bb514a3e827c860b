// Submitting a workload: a form of its kind's own fields, with what would happen and the same as text beside it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { type ApiError, post, type Schemas, send } from "../../api/client";
import { type KindForm, loadForm } from "../../api/forms";
import { actionOf, kinds, titleOf } from "../../api/kinds";
import { may } from "../../api/session";
import { useSettled } from "../../parts/delay";
import { Dialects } from "../../parts/dialects";
import { FieldInput, type FormState, SpecFields } from "../../parts/form/form";
import type { Field } from "../../parts/form/fields";
import { countValues, type JsonObject, pathText, withValue } from "../../parts/form/values";
import { asApiError, useLoad } from "../../parts/load";
import { css as parts, Problem, ViewTitle } from "../../parts/parts";
import { go, query, setQuery } from "../../router";
import { isShown } from "../../store/clusters";
import { SaveTemplate } from "./save-template";
import { Start } from "./start";
import { Plan, usePlan } from "./plan";
import { findRule } from "./policy";
import { loadNames, loadOriginal, loadPolicy, loadSources } from "./sources";
import css from "./submit.module.css";
import { copiedName, type Draft, problemsOf, requestOf, type SetDraft, withProject, withSettings } from "./submission";

const PAUSE_MS = 500;
const NAME: Field = {
  name: "name",
  label: "Name",
  text: "Unique in its project: lower-case letters, digits and hyphens.",
  type: "string",
  isRequired: true,
};

export function Submit() {
  const rest = query.value.get("kind") ?? kinds[0]?.rest ?? "";
  const form = useLoad(() => loadForm(rest), rest);
  const [draft, setDraft] = useState<Draft>({
    name: "",
    projectId: "",
    templateId: query.value.get("template") ?? "",
    spec: {},
  });
  const [replaced, setReplaced] = useState<Replaced>();
  const original = query.value.get("from") ?? "";
  const copied = useLoad(async (signal) => (original ? loadOriginal(original, signal) : undefined), original);
  useEffect(() => {
    if (!copied.value) return;
    const { name, projectId } = copied.value;
    const spec = withSettings(copied.value.spec, query.value.getAll("set"));
    setDraft({ name: copiedName(name), projectId, templateId: "", spec });
    if (query.value.has("set")) setReplaced({ id: original, name, kind: copied.value.form.title });
    setQuery({ kind: copied.value.form.rest, from: "", set: "" });
  }, [copied.value]);
  return (
    <div class={parts.page}>
      <ViewTitle>Submit a workload</ViewTitle>
      <div class={parts.choices} role="group" aria-label="Kind of workload">
        {kinds.map((kind) => (
          <button
            key={kind.rest}
            type="button"
            aria-pressed={kind.rest === rest}
            onClick={() => setQuery({ kind: kind.rest })}
          >
            {titleOf(kind.title)}
          </button>
        ))}
      </div>
      <Problem error={form.error ?? copied.error} />
      {form.value?.rest === rest && (
        <Filled key={rest} form={form.value} draft={draft} setDraft={setDraft} replaced={replaced} />
      )}
    </div>
  );
}

/** The workload that waits and that a changed copy is made of. */
interface Replaced {
  id: string;
  name: string;
  kind: string;
}

interface FilledProps {
  form: KindForm;
  draft: Draft;
  setDraft: SetDraft;
  replaced: Replaced | undefined;
}

function Filled({ form, draft, setDraft, replaced }: FilledProps) {
  const sources = useLoad(loadSources, "");
  const projects = (sources.value?.projects ?? []).filter((one) => isShown(one.clusterId) || one.id === draft.projectId);
  const project = projects.find((one) => one.id === draft.projectId);
  useEffect(() => {
    const all = sources.value?.projects ?? [];
    // Somebody may have typed, or a copy may have come, since this was drawn: the last draft counts here and below.
    setDraft((last) => withProject(last, all, projects[0]));
  }, [projects]);
  const policy = useLoad((signal) => loadPolicy(form.rest, draft.projectId, signal), form.rest + draft.projectId);
  const names = useLoad((signal) => loadNames(draft.projectId, signal), draft.projectId);
  const [search, setSearch] = useState("");
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refusal, setRefusal] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [isDeleting, setDeleting] = useState(true);
  const request = requestOf(form, draft, project?.clusterId ?? "");
  const settled = useSettled(JSON.stringify(request), PAUSE_MS);
  const plan = usePlan(form.rest, canBePlanned(settled) ? settled : "");
  const found = useMemo(() => problemsOf((refusal ?? plan.error)?.issues ?? []), [refusal, plan.error]);
  const problems = refusal ? found : new Map([...found].filter(([path]) => touched.has(path)));
  const change = (next: (last: Draft) => Draft, path: string): void => {
    setTouched((last) => new Set([...last, path]));
    setRefusal(undefined);
    setDraft(next);
  };
  const state: FormState = {
    root: draft.spec,
    set: (path, value) => change((last) => ({ ...last, spec: withValue(last.spec, path, value) }), pathText(path)),
    problems,
    ruleOf: (path) => findRule(policy.value, form.policySections, path, sources.value?.scopes ?? new Map()),
    namesOf: (kind) => names.value?.get(kind) ?? [],
  };
  const submit = async (): Promise<void> => {
    setBusy(true);
    try {
      const path = `/api/v1/workloads/${form.rest}` as "/api/v1/workloads/trainings";
      const created = (await post(path, { body: request })) as Schemas["Training"];
      if (replaced && isDeleting) await removeReplaced(replaced);
      go(`/workloads/${created.workloadId}`);
    } catch (caught) {
      setRefusal(asApiError(caught));
      setBusy(false);
      requestAnimationFrame(() => document.querySelector<HTMLElement>("form [aria-invalid]")?.focus());
    }
  };
  const named: FormState = {
    ...state,
    root: { name: draft.name },
    set: (_path, value) => change((last) => ({ ...last, name: typeof value === "string" ? value : "" }), "name"),
    ruleOf: () => undefined,
  };
  return (
    <>
    {may("templates:create") && project && countValues(draft.spec) > 0 && (
      <div class={css.template}>
        <SaveTemplate form={form} spec={draft.spec} project={project} />
      </div>
    )}
    <form
      class={css.columns}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div class={css.form}>
        <Problem error={sources.error ?? policy.error} />
        <fieldset class={css.head}>
          <legend class={parts.hidden}>Name and project</legend>
          <FieldInput form={named} field={NAME} path={["name"]} />
          <Start form={form} draft={draft} setDraft={setDraft} projects={projects} />
        </fieldset>
        <input
          type="search"
          aria-label="Find a field"
          placeholder="Find a field (press /)"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <SpecFields form={state} fields={form.fields} search={search} />
      </div>
      <aside class={css.aside} aria-label="Plan and text">
        <Refusal error={refusal} />
        {replaced && (
          <label>
            <input type="checkbox" checked={isDeleting} onChange={() => setDeleting(!isDeleting)} /> Delete {replaced.name},
            which this one replaces, once this one is submitted
          </label>
        )}
        <button type="submit" data-main disabled={isBusy || !project} class={css.submit}>
          Submit {form.noun}
        </button>
        <Plan plan={plan} isRefused={refusal !== undefined} />
        <section class={parts.panel} aria-label="The same as text">
          <h2>The same as text</h2>
          <Dialects
            label="The form as text"
            hasYaml={kinds.some((kind) => kind.rest === form.rest && kind.hasYaml)}
            isRefused={(plan.error?.issues.length ?? 0) > 0}
            load={(dialect) => useText(form, settled, project?.name ?? "", dialect)}
          />
        </section>
      </aside>
    </form>
    </>
  );
}

/** Whether a request has what a plan needs at least. */
function canBePlanned(request: string): boolean {
  const { name, clusterId, templateId, spec } = JSON.parse(request) as JsonObject;
  // The cluster is known once the projects are loaded.
  return Boolean(name) && Boolean(clusterId) && (Boolean(templateId) || countValues(spec) > 0);
}

async function removeReplaced({ id, kind }: Replaced): Promise<void> {
  const action = actionOf(kind, "delete");
  if (action) await send(action.method, action.path, { path: { workloadId: id } });
}

/** Why the submission was refused; each field has its own part of it. */
function Refusal({ error }: { error: ApiError | undefined }) {
  return error ? <Problem error={error} /> : null;
}

function useText(form: KindForm, request: string, project: string, to: string) {
  return useLoad(async (signal) => {
    const { name, spec, ...beside } = JSON.parse(request) as JsonObject;
    for (const id of ["projectId", "clusterId", "templateId"]) delete beside[id]; // eslint-disable-line @typescript-eslint/no-dynamic-delete -- a copy
    const text = JSON.stringify({ name: name === "" ? "workload" : name, spec, ...beside });
    const body = { text, kind: form.rest, to, ...(project ? { project } : {}) };
    const { workloads } = await post("/api/v1/conversions", { body, signal });
    return workloads.map((workload) => workload.text).join("");
  }, form.rest + request + project + to);
}
