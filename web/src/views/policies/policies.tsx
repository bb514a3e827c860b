// The policies of every scope: written, changed and deleted; and what they make together in a project.
import { useState } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { kinds } from "../../api/kinds";
import { may } from "../../api/session";
import { type Changes, useChanges } from "../../parts/change";
import { useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { css as parts, Empty, Panel, Problem, Time, ViewTitle } from "../../parts/parts";
import { type Column, Table } from "../../parts/table";
import { clusters, isShown } from "../../store/clusters";
import { PolicyEditor } from "./editor";
import { Effective } from "./effective";
import { describeScope, type Places, placeOf, placesOf } from "./places";
import { deletePolicy, isFor, loadPolicy, putPolicy, toBody } from "./stored";

type Entry = Schemas["PolicyEntry"];

const LIMIT = { limit: 500 };

export function Policies() {
  const changes = useChanges();
  const [isWriting, setWriting] = useState(false);
  const policies = useLoad((signal) => get("/api/v2/policy", { signal }), changes.version);
  const projects = useLoad((signal) => get("/api/v1/org-unit/projects", { query: LIMIT, signal }), changes.version);
  const departments = useLoad((signal) => get("/api/v1/org-unit/departments", { query: LIMIT, signal }), changes.version);
  const places = placesOf(projects.value?.projects ?? [], departments.value?.departments ?? [], clusters.value);
  const entries = (policies.value?.policies ?? []).filter(({ meta }) => isShown(placeOf(meta, places)?.cluster));
  const canWrite = may("policies:create");
  return (
    <div class={parts.page}>
      <ViewTitle>Policies</ViewTitle>
      <Effective
        version={changes.version}
        projects={projects}
        policies={policies.value?.policies ?? []}
        places={places}
      />
      <Panel
        title="Policies of all scopes"
        actions={
          canWrite && (
            <button type="button" data-main onClick={() => setWriting(true)}>
              Write a policy
            </button>
          )
        }
      >
        <Problem error={changes.error ?? policies.error} />
        {policies.value && entries.length === 0 && (
          <Empty command="fairlead policy apply -f policy.yaml">There are no policies yet. Write one here, or:</Empty>
        )}
        {entries.length > 0 && (
          <Table
            label="Policies"
            columns={columnsOf(places, changes)}
            rows={entries}
            keyOf={(entry) => entry.meta.id}
          />
        )}
      </Panel>
      {isWriting && <PolicyEditor changes={changes} onClose={() => setWriting(false)} />}
    </div>
  );
}

function columnsOf(places: Places, changes: Changes): Column<Entry>[] {
  return [
    { title: "Name", cell: (entry) => <strong>{entry.meta.name}</strong> },
    { title: "For", cell: (entry) => entry.type },
    { title: "Scope", cell: (entry) => describeScope(entry.meta, places) },
    { title: "Changed", cell: (entry) => <Time at={entry.meta.updatedAt} /> },
    { title: "By", cell: (entry) => entry.meta.updatedBy },
    { title: "", cell: (entry) => <Actions entry={entry} changes={changes} /> },
  ];
}

function Actions({ entry, changes }: { entry: Entry; changes: Changes }) {
  const [stored, setStored] = useState<Schemas["PolicyView"]>();
  const rest = kinds.find((kind) => isFor(entry, kind))?.rest;
  if (!rest) return null;
  const open = async (): Promise<void> => setStored(await loadPolicy(rest, entry.meta));
  const drop = async (): Promise<void> => {
    const before = toBody(await loadPolicy(rest, entry.meta));
    await deletePolicy(rest, entry.meta);
    tell(`The policy ${entry.meta.name} is deleted: its rules no longer hold.`, () => changes.make(() => putPolicy(rest, before)));
  };
  const name = `${entry.meta.name} for ${entry.type}`;
  return (
    <div class={parts.actions}>
      {may("policies:update") && (
        <button type="button" aria-label={`Change ${name}`} onClick={() => void changes.make(open)}>
          Change
        </button>
      )}
      {may("policies:delete") && (
        <button type="button" aria-label={`Delete ${name}`} onClick={() => void changes.make(drop)}>
          Delete
        </button>
      )}
      {stored && <PolicyEditor changes={changes} stored={{ rest, view: stored }} onClose={() => setStored(undefined)} />}
    </div>
  );
}
