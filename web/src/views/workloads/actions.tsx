// Suspending, resuming and deleting one or several workloads: the dialog says what would happen before anything does.
import { useState } from "preact/hooks";
import { type ApiError, post, send } from "../../api/client";
import { actionOf, type Verb } from "../../api/kinds";
import { asApiError, useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { css, Dialog, Problem } from "../../parts/parts";
import { amount, count } from "../../parts/texts";
import { hasEnded, type Row } from "../../store/rows";
import { Consequences } from "./consequences";

const TITLES: Record<Verb, string> = { suspend: "Suspend", resume: "Resume", delete: "Delete" };
const LOSSES: Record<Verb, string> = {
  suspend: "Their pods stop. What they have not saved is lost; they can be resumed.",
  resume: "They start as soon as there is room for them.",
  delete: "Their pods stop, and their logs and what they have not saved are lost. This cannot be undone.",
};

const DONE: Record<Verb, string> = { suspend: "suspended", resume: "resumed", delete: "deleted" };
/** What takes a verb back. */
const BACK: Partial<Record<Verb, Verb>> = { suspend: "resume", resume: "suspend" };

async function doAll(rows: readonly Row[], verb: Verb): Promise<void> {
  for (const row of rows) {
    const action = actionOf(row.kind, verb);
    if (action) await send(action.method, action.path, { path: { workloadId: row.id } });
  }
}

/** Those of the rows that a verb does something to. */
export function applicable(rows: readonly Row[], verb: Verb): Row[] {
  return rows.filter((row) => {
    if (!actionOf(row.kind, verb)) return false;
    if (verb === "resume") return row.phase === "Stopped";
    return verb === "delete" || !hasEnded(row);
  });
}

export function Action({ rows, verb, onClose }: { rows: Row[]; verb: Verb; onClose: () => void }) {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const held = rows.reduce((sum, row) => sum + row.gpusHeld, 0);
  const act = async (): Promise<void> => {
    setBusy(true);
    try {
      await doAll(rows, verb);
      const back = BACK[verb];
      tell(`${count(rows.length, "workload")} ${DONE[verb]}.`, back && (() => doAll(rows, back)));
      onClose();
    } catch (caught) {
      setError(asApiError(caught));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`${TITLES[verb]} ${count(rows.length, "workload")}?`} onClose={onClose}>
      <p>
        {rows
          .slice(0, 10)
          .map((row) => `${row.project}/${row.name}`)
          .join(", ")}
        {rows.length > 10 && ` and ${rows.length - 10} more`}
      </p>
      <p>
        {LOSSES[verb]} {verb !== "resume" && held > 0 && `They hold ${count(Number(amount(held)), "GPU")} now.`}
      </p>
      {verb !== "resume" && <Preview rows={rows} />}
      <Problem error={error} />
      <div class={css.buttons}>
        <button type="button" onClick={onClose} autofocus>
          Cancel
        </button>
        <button type="button" data-main={verb !== "delete"} data-danger={verb === "delete"} disabled={isBusy} onClick={() => void act()}>
          {TITLES[verb]} {count(rows.length, "workload")}
        </button>
      </div>
    </Dialog>
  );
}

/** What the scheduler would do if the workloads ended. */
function Preview({ rows }: { rows: Row[] }) {
  const active = rows.filter((row) => !hasEnded(row));
  const changes = active.map((row) => ({ change: "removeWorkload", workload: `${row.project}/${row.name}` }));
  const { value, error } = useLoad(
    async (signal) => (active.length ? post("/api/v1/scheduling/what-if", { body: { changes }, signal }) : null),
    active.map((row) => row.id).join(),
  );
  if (error) return <p class={css.quiet}>What would follow is not known: {error.message}</p>;
  if (value === undefined) return <p class={css.quiet}>Asking the scheduler what would follow…</p>;
  return value && <Consequences starts={value.starts} effects={value.effects} />;
}
