// What would follow if a node were drained, cordoned or removed, or if there were more like it. Nothing is changed.
import { useState } from "preact/hooks";
import { get, post, type Schemas } from "../../api/client";
import { useChanges } from "../../parts/change";
import { useLoad } from "../../parts/load";
import { CopyButton, css as parts, Dialog, Problem } from "../../parts/parts";
import { count } from "../../parts/texts";
import { Consequences } from "../workloads/consequences";
import css from "./cluster.module.css";

type Change = Schemas["WhatIfRequest"]["changes"][number];

interface Question {
  title: string;
  change: (node: string) => Change;
  /** Does it, on a cluster. */
  command?: (node: string) => string;
}

const QUESTIONS: readonly Question[] = [
  {
    title: "Drain it",
    change: (node) => ({ change: "node", node, action: "drain" }),
    command: (node) => `kubectl drain ${node} --ignore-daemonsets`,
  },
  {
    title: "Cordon it",
    change: (node) => ({ change: "node", node, action: "cordon" }),
    command: (node) => `kubectl cordon ${node}`,
  },
  {
    title: "Uncordon it",
    change: (node) => ({ change: "node", node, action: "uncordon" }),
    command: (node) => `kubectl uncordon ${node}`,
  },
  { title: "Remove it", change: (node) => ({ change: "node", node, action: "remove" }) },
  { title: "Add one more like it", change: (node) => ({ change: "addNodes", like: node, count: 1 }) },
];

export function NodeWhatIf({ node, onClose }: { node: string; onClose: () => void }) {
  const changes = useChanges();
  const [asked, setAsked] = useState<{ question: Question; answer: Schemas["WhatIfAnswer"] }>();
  const clusters = useLoad((signal) => get("/api/v1/clusters", { signal }), "");
  const isCluster = clusters.value?.[0]?.engine === "kubernetes";
  const ask = (question: Question): void =>
    void changes.make(async () => {
      const body = { changes: [question.change(node)] };
      setAsked({ question, answer: await post("/api/v1/scheduling/what-if", { body }) });
    });
  const command = isCluster ? asked?.question.command?.(node) : undefined;
  return (
    <Dialog title={`What if: node ${node}`} onClose={onClose}>
      <div class={css.questions}>
        {QUESTIONS.map((question) => (
          <button
            key={question.title}
            type="button"
            aria-pressed={asked?.question === question}
            onClick={() => ask(question)}
          >
            {question.title}
          </button>
        ))}
      </div>
      <Problem error={changes.error} />
      {asked && (
        <div role="status">
          <h3>{asked.question.title}</h3>
          <Consequences starts={asked.answer.starts} effects={asked.answer.effects} />
          <p>
            {count(asked.answer.waitingBefore, "workload")} waiting now, {asked.answer.waitingAfter} then. Nothing has been
            changed.
          </p>
        </div>
      )}
      {command && (
        <p>
          To do it: <code>{command}</code> <CopyButton text={command} />
        </p>
      )}
      <form method="dialog" class={parts.buttons}>
        <button>Close</button>
      </form>
    </Dialog>
  );
}
