// Whom a change concerns, in the words of all answers of the scheduler.
import type { Schemas } from "../../api/client";
import { count } from "../../parts/texts";

type Concerned = Schemas["Concerned"];

function names(concerned: Concerned): string {
  const shown = (concerned.workloads ?? []).map((one) => `${one.project}/${one.workload}`);
  if (concerned.hidden) shown.push(`${count(concerned.hidden, "workload")} that you may not see`);
  return shown.join(", ");
}

export function Consequences({ starts, effects }: { starts?: Concerned; effects: Schemas["Effects"] | undefined }) {
  const lines: [string, string][] = [
    ["Would start", starts ? names(starts) : ""],
    ["Would be evicted", effects?.evicted ? names(effects.evicted) : ""],
    ["Would move", effects?.moved ? names(effects.moved) : ""],
    ["Would wait longer", effects?.delayed ? names(effects.delayed) : ""],
  ];
  const said = lines.filter(([, text]) => text);
  if (said.length === 0) return <p>No other workload would be affected.</p>;
  return (
    <ul>
      {said.map(([title, text]) => (
        <li key={title}>
          {title}: {text}
        </li>
      ))}
    </ul>
  );
}
