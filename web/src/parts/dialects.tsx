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
  /** Whether the kind of workload can be written as workload YAML. */
  hasYaml: boolean;
  /** Whether it has values that are refused, which is said beside them already. */
  isRefused?: boolean;
  load: (dialect: Dialect) => Loaded<string>;
}

export function Dialects({ label, hasYaml, isRefused, load }: Props) {
  const offered = DIALECTS.filter(([name]) => hasYaml || name !== "yaml");
  const [dialect, setDialect] = useState<Dialect>(hasYaml ? "yaml" : "command");
  const { value, error } = load(dialect);
  return (
    <>
      <div class={css.choices} role="group" aria-label="Dialect">
        {offered.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={dialect === name} onClick={() => setDialect(name)}>
            {title}
          </button>
        ))}
        <CopyButton text={value ?? ""} />
      </div>
      {error && isRefused ? <p class={css.quiet}>It is written once all values can be accepted.</p> : <Problem error={error} />}
      <pre class={css.text} tabIndex={0} role="region" aria-label={label}>
        {value}
      </pre>
    </>
  );
}
