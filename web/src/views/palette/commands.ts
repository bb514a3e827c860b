// What the palette can do: every view, every workload, a form for each kind, the theme, signing out.
import { kinds } from "../../api/kinds";
import { signOut } from "../../api/session";
import { go } from "../../router";
import type { Row } from "../../store/rows";
import { endFeed } from "../../store/workloads";
import { applyTheme, THEMES } from "../../theme/theme";
import { sections } from "../sections";
import { score } from "./score";

export interface Command {
  id: string;
  title: string;
  /** What kind of thing it is, or its keys. */
  note: string;
  run: () => void;
}

const MOST = 12;

function fixedCommands(): Command[] {
  return [
    ...sections().map((section) => ({
      id: section.path,
      title: section.title,
      note: `g ${section.key}`,
      run: () => go(section.path),
    })),
    ...kinds.map((kind) => ({
      id: `submit ${kind.rest}`,
      title: `Submit: ${kind.noun}`,
      note: "form",
      run: () => go(`/submit?kind=${kind.rest}`),
    })),
    ...THEMES.map((name) => ({
      id: `theme ${name}`,
      title: `Theme: ${name}`,
      note: "theme",
      run: () => applyTheme(name),
    })),
    { id: "sign-out", title: "Sign out", note: "account", run: () => void signOut().then(endFeed) },
  ];
}

/** The best commands for a text. Workloads count only once something is typed: there may be ten thousand. */
export function findCommands(text: string, rows: readonly Row[]): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found: [number, Command][] = [];
  for (const command of fixedCommands()) {
    const points = score(command.title, command.note, words);
    if (points) found.push([points + 0.5, command]);
  }
  if (words.length > 0) {
    for (const row of rows) {
      const note = `${row.project} · ${row.kind} · ${row.phase}`;
      const points = score(row.name, note, words);
      if (points) found.push([points, { id: row.id, title: row.name, note, run: () => go(`/workloads/${row.id}`) }]);
    }
  }
  return found
    .sort((a, b) => b[0] - a[0])
    .slice(0, MOST)
    .map(([, command]) => command);
}
