// One node: what would follow if it were drained, cordoned or removed, or if there were more like it; and doing it.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import { may } from "../../api/session";
import { useChanges } from "../../parts/change";
import { tell } from "../../parts/notices";
import { css as parts, Dialog, Problem } from "../../parts/parts";
import { count } from "../../parts/texts";
import { Consequences } from "../workloads/consequences";
import css from "./cluster.module.css";

type Node = Schemas["NodeView"];
type Change = Schemas["WhatIfRequest"]["changes"][number];
type Maintenance = "cordon" | "uncordon" | "drain";

interface Question {
  title: string;
  change: Change;
  /** What the server can do itself. */
  action?: Maintenance;
}

const DONE: Record<Maintenance, string> = {
  cordon: "is cordoned: it takes no new pods",
  uncordon: "is uncordoned: pods can be placed on it again",
  drain: "is being drained: its pods are evicted, and their workloads wait again",
};

/** What can be asked about a node, in the state in which it is. */
export function questionsAbout(node: Pick<Node, "name" | "cordoned" | "draining">): Question[] {
  const about = (title: string, action: Maintenance): Question => ({
    title,
    action,
    change: { change: "node", node: node.name, action },
  });
  return [
    ...(node.draining ? [] : [about("Drain it", "drain")]),
    ...(node.cordoned && !node.draining ? [] : [about(node.draining ? "Stop draining, keep it cordoned" : "Cordon it", "cordon")]),
    ...(node.cordoned ? [about("Uncordon it", "uncordon")] : []),
    { title: "Remove it", change: { change: "node", node: node.name, action: "remove" } },
    { title: "Add one more like it", change: { change: "addNodes", like: node.name, count: 1 } },
  ];
}

function maintain(node: Node, action: Maintenance): Promise<unknown> {
  const options = { path: { nodeId: node.id } };
  if (action === "drain") return post("/api/v1/nodes/{nodeId}/drain", options);
  return action === "cordon"
    ? post("/api/v1/nodes/{nodeId}/cordon", options)
    : post("/api/v1/nodes/{nodeId}/uncordon", options);
}

interface Props {
  node: Node;
  /** Whether the scheduler can be asked about it. */
  isKnown: boolean;
  onClose: () => void;
  onChanged: () => void;
}

export function NodeDialog({ node, isKnown, onClose, onChanged }: Props) {
  const changes = useChanges();
  const [asked, setAsked] = useState<{ question: Question; answer?: Schemas["WhatIfAnswer"] }>();
  const questions = questionsAbout(node).filter((question) => isKnown || question.action);
  const ask = (question: Question): void =>
    void changes.make(async () => {
      const body = { changes: [question.change] };
      setAsked(isKnown ? { question, answer: await post("/api/v1/scheduling/what-if", { body }) } : { question });
    });
  const action = may("nodes:update") ? asked?.question.action : undefined;
  const act = async (wanted: Maintenance): Promise<void> => {
    if (!(await changes.make(() => maintain(node, wanted)))) return;
    const back = wanted === "uncordon" ? "cordon" : "uncordon";
    tell(`Node ${node.name} ${DONE[wanted]}.`, async () => {
      await maintain(node, back);
      onChanged();
    });
    onChanged();
    onClose();
  };
  return (
    <Dialog title={`Node ${node.name}`} onClose={onClose}>
      <p class={parts.quiet}>Choose what to do with it. You see what would follow before anything changes.</p>
      <div class={css.questions}>
        {questions.map((question) => (
          <button
            key={question.title}
            type="button"
            aria-pressed={asked?.question.title === question.title}
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
          {asked.answer ? <Answer answer={asked.answer} /> : <p>What would follow is not known in this cluster.</p>}
          {asked.question.action === "drain" && (
            <p>Evicted workloads start again from their beginning or their last checkpoint.</p>
          )}
        </div>
      )}
      <form method="dialog" class={parts.buttons}>
        <button>Close</button>
        {action && (
          <button type="button" data-main onClick={() => void act(action)}>
            {action === "drain" ? `Drain ${node.name}` : action === "cordon" ? `Cordon ${node.name}` : `Uncordon ${node.name}`}
          </button>
        )}
      </form>
    </Dialog>
  );
}

function Answer({ answer }: { answer: Schemas["WhatIfAnswer"] }) {
  return (
    <>
      <Consequences starts={answer.starts} effects={answer.effects} />
      <p>
        {count(answer.waitingBefore, "workload")} waiting now, {answer.waitingAfter} then.
      </p>
    </>
  );
}
