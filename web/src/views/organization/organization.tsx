// Departments and their projects as a tree, each with its quota of GPUs: used within it, borrowed,
// lent, asked for in addition.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { may } from "../../api/session";
import { useLoad } from "../../parts/load";
import { Bar, css as parts, Empty, Problem, ViewTitle } from "../../parts/parts";
import { amount } from "../../parts/texts";
import { href } from "../../router";
import { isShown, nameOfCluster } from "../../store/clusters";
import { isRunning, isWaiting } from "../../store/rows";
import { rows } from "../../store/workloads";
import css from "./organization.module.css";
import { NewOwner } from "./new-owner";
import { QuotaEditor } from "./quota-editor";
import { gpuFigures } from "./quotas";

export function Organization() {
  const [edited, setEdited] = useState(0);
  const active = rows.value.filter((row) => isRunning(row) || isWaiting(row));
  const version = `${edited} ${active.map((row) => `${row.id}${row.phase}${row.gpusHeld}`).join()}`;
  const query = { limit: 500 };
  const departments = useLoad((signal) => get("/api/v1/org-unit/departments", { query, signal }), version);
  const projects = useLoad((signal) => get("/api/v1/org-unit/projects", { query, signal }), version);
  const shares = useLoad((signal) => get("/api/v1/scheduling/shares", { signal }), version);
  const sharesOf = (type: "project" | "department", id: string) =>
    (shares.value?.shares ?? []).filter((share) => share.type === type && share.id === id);
  const all = (projects.value?.projects ?? []).filter((one) => isShown(one.clusterId));
  return (
    <div class={parts.page}>
      <div class={parts.title}>
        <ViewTitle>Organization</ViewTitle>
        {may("department:create") && <AddDepartment onCreated={() => setEdited((last) => last + 1)} />}
      </div>
      <p class={css.legend}>
        GPUs of each project: <span data-part="used">within its quota</span>{" "}
        <span data-part="borrowed">borrowed beyond it</span> <span data-part="asked">asked for in addition</span>{" "}
        <span data-part="lent">lent to others</span> <span data-part="quota">its quota</span> <span data-part="fair">its fair share</span>
      </p>
      <Problem error={departments.error ?? projects.error} />
      {projects.value && all.length === 0 && (
        <Empty command="fairlead project create NAME">There are no projects that you may see. Create one:</Empty>
      )}
      {(departments.value?.departments ?? []).filter((one) => isShown(one.clusterId)).map((department) => (
        <section key={department.id} class={parts.panel} aria-label={`Department ${department.name}`}>
          <Owner
            owner={department}
            what="Department"
            shares={sharesOf("department", department.id)}
            onEdited={() => setEdited((last) => last + 1)}
          >
            {may("project:create") && (
              <AddProject department={department} onCreated={() => setEdited((last) => last + 1)} />
            )}
          </Owner>
          <ul class={css.projects}>
            {all
              .filter((project) => project.parentId === department.id)
              .map((project) => (
                <li key={project.id}>
                  <Owner
                    owner={project}
                    what="Project"
                    shares={sharesOf("project", project.id)}
                    onEdited={() => setEdited((last) => last + 1)}
                  />
                </li>
              ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function AddDepartment({ onCreated }: { onCreated: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const close = (isCreated: boolean): void => {
    setOpen(false);
    if (isCreated) onCreated();
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        New department
      </button>
      {isOpen && <NewOwner onClose={close} />}
    </>
  );
}

function AddProject({ department, onCreated }: { department: Schemas["DepartmentView"]; onCreated: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const close = (isCreated: boolean): void => {
    setOpen(false);
    if (isCreated) onCreated();
  };
  return (
    <>
      <button type="button" aria-label={`New project in ${department.name}`} onClick={() => setOpen(true)}>
        New project
      </button>
      {isOpen && <NewOwner department={department} onClose={close} />}
    </>
  );
}

interface OwnerProps {
  owner: Schemas["ProjectView"] | Schemas["DepartmentView"];
  what: "Project" | "Department";
  shares: Schemas["GpuShareView"][];
  onEdited: () => void;
  /** More buttons. */
  children?: ComponentChildren;
}

function Owner({ owner, what, shares, onEdited, children }: OwnerProps) {
  const [isEditing, setEditing] = useState(false);
  const { quota, used, asked, limit, lent, fairShare } = gpuFigures(owner, shares);
  const isUnlimited = quota === Infinity;
  const within = Math.min(used, quota);
  const text = [
    isUnlimited ? `${amount(used)} GPUs used, quota unlimited` : `${amount(used)} GPUs used of a quota of ${amount(quota)}`,
    used > quota ? `${amount(used - quota)} borrowed` : "",
    lent > 0 ? `${amount(lent)} of its quota lent to others` : "",
    asked > 0 ? `${amount(asked)} more asked for` : "",
    fairShare !== undefined ? `fair share ${amount(fairShare)}` : "",
    limit !== undefined ? `limit ${amount(limit)}` : "",
  ];
  const said = text.filter(Boolean).join(", ");
  const total = Math.max(isUnlimited ? 0 : quota, used + asked, 1);
  return (
    <div class={css.owner}>
      <div class={css.name}>
        {what === "Project" ? (
          <h3>
            <a href={href(`/workloads?project=${encodeURIComponent(owner.name)}`)}>{owner.name}</a>
          </h3>
        ) : (
          <h2>
            {owner.name} <span class={css.cluster}>{nameOfCluster(owner.clusterId)}</span>
          </h2>
        )}
        <div class={parts.actions}>
          {children}
          {may(what === "Project" ? "project:update" : "department:update") && (
            <button type="button" aria-label={`Change quota of ${owner.name}`} onClick={() => setEditing(true)}>
              Change quota
            </button>
          )}
        </div>
      </div>
      <Bar
        parts={[
          { name: "used", value: within },
          { name: "borrowed", value: used - within, kind: "borrowed" },
          { name: "asked", value: asked, kind: "asked" },
        ]}
        total={total}
        {...(isUnlimited ? {} : { mark: quota, lent })}
        fair={fairShare || undefined}
        label={`${owner.name}: ${said}`}
      />
      <p class={parts.quiet}>{said}</p>
      {isEditing && (
        <QuotaEditor
          owner={owner}
          type={what === "Project" ? "project" : "department"}
          onClose={() => setEditing(false)}
          onSaved={onEdited}
        />
      )}
    </div>
  );
}
