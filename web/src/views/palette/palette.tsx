// The command palette: type a few letters, Enter goes there. Arrows choose; the field keeps the focus.
import { useEffect, useRef, useState } from "preact/hooks";
import { css as parts } from "../../parts/parts";
import { rows } from "../../store/workloads";
import { findCommands } from "./commands";
import css from "./palette.module.css";

export function Palette({ onClose }: { onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  useEffect(() => box.current?.showModal(), []);
  const found = findCommands(text, rows.value);
  const at = Math.min(chosen, found.length - 1);
  const run = (index: number): void => {
    onClose();
    found[index]?.run();
  };
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    if (step) setChosen((at + step + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") run(at);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={box} class={css.box} aria-label="Go to" onClose={onClose} onClick={(event) => event.target === box.current && onClose()}>
      <input
        class={css.input}
        role="combobox"
        aria-label="Go to a view or a workload"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={found[at] ? `command-${at}` : undefined}
        placeholder="Go to a view or a workload…"
        value={text}
        autofocus
        onKeyDown={press}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
      />
      <ul id="commands" class={css.list} role="listbox" aria-label="Commands">
        {found.map((command, index) => (
          <li
            key={command.id}
            id={`command-${index}`}
            role="option"
            aria-selected={index === at}
            onMouseMove={() => setChosen(index)}
            onClick={() => run(index)}
          >
            <span>{command.title}</span> <span class={css.note}>{command.note}</span>
          </li>
        ))}
      </ul>
      <p class={parts.hidden} role="status">
        {found.length === 0 ? "Nothing found" : `${found.length} found`}
      </p>
      {found.length === 0 && <p class={css.none}>Nothing is called that.</p>}
    </dialog>
  );
}
