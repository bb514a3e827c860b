// What has just been done, said in one line at the edge of the page, with a way back where there is one.
import { signal } from "@preact/signals";
import css from "./notices.module.css";

interface Notice {
  id: number;
  text: string;
  undo?: () => Promise<unknown>;
}

/** Long enough to read it and to reach the button by keyboard. */
const SHOWN_MS = 20_000;
const notices = signal<readonly Notice[]>([]);
let last = 0;

function forget(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id);
}

/** Says what was done. `undo` reverts it; what fails then is said in the same place. */
export function tell(text: string, undo?: () => Promise<unknown>): void {
  const id = ++last;
  notices.value = [...notices.value.slice(-2), undo ? { id, text, undo } : { id, text }];
  setTimeout(() => forget(id), SHOWN_MS);
}

function takeBack(notice: Notice): void {
  forget(notice.id);
  notice.undo?.().then(
    () => tell("Undone."),
    (error: unknown) => tell(`It could not be undone: ${error instanceof Error ? error.message : String(error)}`),
  );
}

export function Notices() {
  return (
    <div class={css.box} role="status" aria-label="What was done">
      {notices.value.map((notice) => (
        <p key={notice.id} class={css.notice}>
          <span>{notice.text}</span>
          {notice.undo && (
            <button type="button" onClick={() => takeBack(notice)}>
              Undo
            </button>
          )}
          <button type="button" class={css.close} aria-label="Close the message" onClick={() => forget(notice.id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}
