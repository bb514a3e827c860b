// A labelled choice among a few, which must be made.
import css from "./parts.module.css";

interface Props {
  label: string;
  value: string;
  /** Values and titles. */
  options: [string, string][];
  onChange: (value: string) => void;
}

export function Choice({ label, value, options, onChange }: Props) {
  return (
    <label class={css.field}>
      {label}
      <select required value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">Choose…</option>
        {options.map(([id, title]) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
