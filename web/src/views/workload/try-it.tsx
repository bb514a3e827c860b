// "Try it" on a change that would start the workload: shows what would follow, and does it only then.
import { useState } from "preact/hooks";
import { type ApiError, get, patch, post, type Schemas } from "../../api/client";
import { session } from "../../api/session";
import { asApiError, useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { count } from "../../parts/texts";
import { href } from "../../router";
import { rows } from "../../store/workloads";
import { Action, applicable } from "../workloads/actions";
import { Consequences } from "../workloads/consequences";
import { type Remedy, remedyOf, settingsText } from "./remedies";

interface Props {
  id: string;
  change: Schemas["VerifiedChange"];
}

export function TryIt({ id, change }: Props) {
  const [isOpen, setOpen] = useState(false);
  const remedy = remedyOf(change);
  const label = `Try it: ${change.message}`;
  if (!remedy || (remedy.kind === "share" && !session.value?.isAdministrator)) return null;
  if (remedy.kind === "spec") {
    return (
      <a class={parts.button} aria-label={label} href={href(`/submit?from=${id}&${settingsText(remedy.settings)}`)}>
        Try it
      </a>
    );
  }
  const close = (): void => setOpen(false);
  return (
    <>
      <button type="button" aria-label={label} onClick={() => setOpen(true)}>
        Try it
      </button>
      {isOpen && remedy.kind === "suspend" && <Suspend workloads={remedy.workloads} onClose={close} />}
      {isOpen && remedy.kind === "share" && <Shares title={change.message} changes={remedy.changes} onClose={close} />}
    </>
  );
}

function Suspend({ workloads, onClose }: { workloads: string[]; onClose: () => void }) {
  const named = rows.value.filter((row) => workloads.includes(`${row.project}/${row.name}`));
  const able = applicable(named, "suspend");
  if (able.length < workloads.length) {
    return (
      <Dialog title="Not all of them can be suspended" onClose={onClose}>
        <p>
          {count(workloads.length - able.length, "workload")} of these cannot be suspended, or ended meanwhile:{" "}
          {workloads.join(", ")}
        </p>
        <form method="dialog" class={parts.buttons}>
          <button>Close</button>
        </form>
      </Dialog>
    );
  }
  return <Action rows={able} verb="suspend" onClose={onClose} />;
}

type ShareChanges = Extract<Remedy, { kind: "share" }>["changes"];

function Shares({ title, changes, onClose }: { title: string; changes: ShareChanges; onClose: () => void }) {
  const [error, setError] = useState<ApiError>();
  const preview = useLoad(
    (signal) => post("/api/v1/scheduling/what-if", { body: { changes }, signal }),
    JSON.stringify(changes),
  );
  const apply = async (): Promise<void> => {
    try {
      const before: (() => Promise<unknown>)[] = [];
      for (const change of changes) before.push(await store(change));
      tell(`Done: ${title}.`, () => Promise.all(before.map((undo) => undo())));
      onClose();
    } catch (caught) {
      setError(asApiError(caught));
    }
  };
  return (
    <Dialog title={`${title}?`} onClose={onClose}>
      <div role="status">
        {preview.value ? (
          <Consequences starts={preview.value.starts} effects={preview.value.effects} />
        ) : (
          !preview.error && <p class={parts.quiet}>Asking the scheduler what would follow…</p>
        )}
      </div>
      <Problem error={error ?? preview.error} />
      <div class={parts.buttons}>
        <button type="button" onClick={onClose} autofocus>
          Cancel
        </button>
        <button type="button" data-main disabled={!preview.value} onClick={() => void apply()}>
          Do it
        </button>
      </div>
    </Dialog>
  );
}

const MEMBERS = { quota: "deserved", limit: "limit", weight: "overQuotaWeight" } as const;

/** Changes one share of a project or department; the answer takes it back. */
async function store(change: ShareChanges[number]): Promise<() => Promise<unknown>> {
  const [, type = "", id = ""] = /^(project|department)-(.+)$/.exec(change.queue) ?? [];
  const save = (body: object[]): Promise<unknown> =>
    type === "project"
      ? patch("/api/v1/org-unit/projects/{projectId}/resources", { path: { projectId: id }, body })
      : patch("/api/v1/org-unit/departments/{departmentId}/resources", { path: { departmentId: id }, body });
  const owner =
    type === "project"
      ? await get("/api/v1/org-unit/projects/{projectId}", { path: { projectId: id } })
      : await get("/api/v1/org-unit/departments/{departmentId}", { path: { departmentId: id } });
  const pools = owner.resources.filter((pool) => !change.nodePool || pool.nodePool.name === change.nodePool);
  await save(pools.map(({ nodePool, gpu }) => ({ nodePool, gpu: { ...gpu, [MEMBERS[change.field]]: change.value } })));
  return () => save(pools.map(({ nodePool, gpu }) => ({ nodePool, gpu })));
}
