// A button for what cannot be taken back: it names what is lost, and acts only when that is confirmed.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Changes } from "./change";
import { css, Dialog, Problem } from "./parts";

interface Props {
  /** On the button in the view. */
  label: string;
  /** What a screen reader says there, where the label alone is ambiguous. */
  name: string;
  question: string;
  /** What is lost. */
  children: ComponentChildren;
  changes: Changes;
  act: () => Promise<unknown>;
  /** Why it is not possible now. */
  obstacle?: string | undefined;
}

export function ConfirmButton({ label, name, question, children, changes, act, obstacle }: Props) {
  const [isAsking, setAsking] = useState(false);
  const close = (): void => setAsking(false);
  return (
    <>
      <button type="button" aria-label={name} disabled={Boolean(obstacle)} title={obstacle} onClick={() => setAsking(true)}>
        {label}
      </button>
      {isAsking && (
        <Dialog title={question} onClose={close}>
          <p>{children}</p>
          <Problem error={changes.error} />
          <div class={css.buttons}>
            <button type="button" onClick={close} autofocus>
              Cancel
            </button>
            <button type="button" data-danger onClick={() => void changes.make(act).then((isDone) => isDone && close())}>
              {name}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
