// The small pieces that several views are made of.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { copyText } from "./copy";
import { tell } from "./notices";
import css from "./parts.module.css";
import { ago, count, exactTime, span } from "./texts";

export { css };

/** The time, every ten seconds: times on the page are relative. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 10_000);

const TONES: Record<string, string> = {
  Running: "good",
  Completed: "good",
  Updating: "good",
  Failed: "bad",
  Degraded: "bad",
  Unknown: "bad",
  Pending: "warn",
  Creating: "warn",
  Resuming: "warn",
  Initializing: "warn",
};

/** A phase with its sign; `label` says it in other words. */
export function Phase({ phase, label = phase }: { phase: string; label?: string }) {
  return (
    <span class={css.phase} data-tone={TONES[phase] ?? "quiet"}>
      {label}
    </span>
  );
}

/** A relative time, with the exact one on hover: it is worded only then, because a list has many of them. */
export function Time({ at, isAge }: { at: number | string | null | undefined; isAge?: boolean }) {
  if (at === null || at === undefined) return <span>–</span>;
  const moment = typeof at === "string" ? Date.parse(at) : at;
  // What has just happened is younger than the last tick of the clock that all times follow.
  const moved = now.value;
  const current = Math.max(moved, Date.now());
  return (
    <time
      dateTime={new Date(moment).toISOString()}
      onPointerEnter={(event) => (event.currentTarget.title = exactTime(moment))}
    >
      {isAge ? span((current - moment) / 1000) : ago(moment, current)}
    </time>
  );
}

/** What goes before the list of violations: not all of them once more, which the message of some errors is. */
export function headlineOf({ message, issues }: ApiError): string {
  const hasAll = issues.every((issue) => message.includes(issue.details));
  return issues.length > 1 && hasAll ? `${count(issues.length, "value")} cannot be accepted:` : message;
}

/** An error as the server words it. */
export function Problem({ error }: { error: ApiError | undefined }) {
  if (!error) return null;
  return (
    <div class={css.problem} role="alert">
      {headlineOf(error)}
      {error.issues.length > 1 && (
        <ul>
          {error.issues.map((issue) => (
            <li key={issue.field}>
              {issue.field && <code>{issue.field}</code>} {issue.details}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await copyText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {isCopied ? "Copied" : label}
    </button>
  );
}

/** What to do when there is nothing to show, with the command to copy. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return (
    <div class={css.empty}>
      <p>{children}</p>
      {command && (
        <span class={css.command}>
          <code>{command}</code> <CopyButton text={command} />
        </span>
      )}
    </div>
  );
}

export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} class={css.dialog} aria-labelledby="dialog-title" onClose={props.onClose}>
      <h2 id="dialog-title">{props.title}</h2>
      {props.children}
    </dialog>
  );
}

export interface Part {
  name: string;
  value: number;
  kind?: "borrowed" | "shared" | "asked" | "free" | "away";
}

interface BarProps {
  parts: Part[];
  total: number;
  /** Where lines are drawn: a quota, and a fair share. */
  mark?: number;
  fair?: number | undefined;
  /** The part of the quota that others use. */
  lent?: number;
  /** Says the same in words. */
  label: string;
}

/** A bar of parts of a whole. */
export function Bar(props: BarProps) {
  const share = (value: number): string => `${props.total > 0 ? Math.min(100, (100 * value) / props.total) : 0}%`;
  return (
    <div class={css.bar} role="img" aria-label={props.label} title={props.label}>
      {props.parts.map((part) => (
        <span key={part.name} data-part={part.kind} style={{ width: share(part.value) }} />
      ))}
      {props.mark !== undefined && props.lent ? (
        <i data-lent style={{ left: share(props.mark - props.lent), width: share(props.lent) }} />
      ) : null}
      {props.mark !== undefined && <i style={{ left: share(props.mark) }} />}
      {props.fair !== undefined && <i data-fair style={{ left: share(props.fair) }} />}
    </div>
  );
}

/** A part of a view; `actions` are buttons beside its title. */
export function Panel(props: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class={css.panel} aria-label={props.title}>
      <div class={css.panelHead}>
        <h2>{props.title}</h2>
        {props.actions}
      </div>
      {props.children}
    </section>
  );
}

export function ViewTitle({ children }: { children: string }) {
  useEffect(() => {
    document.title = `${children} · Fairlead`;
  }, [children]);
  return <h1>{children}</h1>;
}
