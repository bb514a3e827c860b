// A workload as text in every dialect, to copy.
import { useState } from "preact/hooks";
import type { Loaded } from "./load";
import { CopyButton, Problem } from "./parts";
import css from "./parts.module.css";

export const DIALECTS = [
  ["yaml", "YAML"],
  ["command", "Command"],
  ["python", "Python"],
  ["rest", "REST"],
  ["kubernetes", "Kubernetes objects"],
] as const;
export type Dialect = (typeof DIALECTS)[number][0];

interface Props {
  label: string;
  load: (dialect: Dialect) => Loaded<string>;
}

export function Dialects({ label, load }: Props) {
  const [dialect, setDialect] = useState<Dialect>("yaml");
  const { value, error } = load(dialect);
  return (
    <>
      <div class={css.choices} role="group" aria-label="Dialect">
        {DIALECTS.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={dialect === name} onClick={() => setDialect(name)}>
            {title}
          </button>
        ))}
        <CopyButton text={value ?? ""} />
      </div>
      <Problem error={error} />
      <pre class={css.text} tabIndex={0} role="region" aria-label={label}>
        {value}
      </pre>
    </>
  );
}
