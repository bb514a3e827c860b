// Draws the fields of a form from their declarations. It knows no field by name.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import css from "./form.module.css";
import { type Field, type Group, isFound, layOut, type Placed } from "./fields";
import { countValues, isObject, type Json, type JsonObject, type Path, pathText, valueAt } from "./values";

/** What a policy says about a field. */
export interface FieldRule {
  /** In words, with where it comes from. */
  note: string;
  /** Whether its value cannot be chosen. */
  isLocked: boolean;
  options?: string[];
  min?: number;
  max?: number;
  default?: Json;
}

export interface FormState {
  root: JsonObject;
  set: (path: Path, value: Json | undefined) => void;
  /** What is wrong with a field, by its path as the server writes it. */
  problems: ReadonlyMap<string, string[]>;
  /** The rule for a field; positions of items are not part of the path. */
  ruleOf: (path: Path) => FieldRule | undefined;
  /** Names of objects that a field can refer to. */
  namesOf: (kind: string) => string[];
}

/** All fields of a spec: the common ones, the others in groups, and the roles. */
export function SpecFields(props: { form: FormState; fields: Field[]; search: string; title?: string }) {
  const { form, fields, search, title = "What to run" } = props;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const layout = layOut(fields);
  return (
    <>
      <Common form={form} title={title} placed={layout.common} words={words} />
      {layout.roles.map((role) => (
        <Role key={role.field.name} form={form} role={role} words={words} />
      ))}
      {layout.groups.map((group) => (
        <GroupFields key={group.title} form={form} group={group} words={words} />
      ))}
    </>
  );
}

interface CommonProps {
  form: FormState;
  title: string;
  placed: Placed[];
  words: string[];
}

function Common({ form, title, placed, words }: CommonProps) {
  const shown = placed.filter(({ field }) => isFound(field, words));
  if (shown.length === 0) return null;
  return (
    <fieldset class={css.group}>
      <legend>{title}</legend>
      <div class={css.fields}>
        {shown.map((one) => (
          <FieldInput key={pathText(one.path)} form={form} {...one} />
        ))}
      </div>
    </fieldset>
  );
}

function Role({ form, role, words }: { form: FormState; role: Placed; words: string[] }) {
  const layout = layOut(role.field.members ?? [], role.path);
  const isOpen = role.field.isRequired === true || words.length > 0 || countValues(valueAt(form.root, role.path)) > 0;
  if (!isFound(role.field, words)) return null;
  return (
    <Fold title={role.field.label} text={role.field.text} isOpen={isOpen} count={countBelow(form, role.path)}>
      <Common form={form} title={`What to run: ${role.field.label.toLowerCase()}`} placed={layout.common} words={words} />
      {layout.groups.map((group) => (
        <GroupFields key={group.title} form={form} group={group} words={words} />
      ))}
    </Fold>
  );
}

function countBelow(form: FormState, path: Path): number {
  return countValues(valueAt(form.root, path));
}

function GroupFields({ form, group, words }: { form: FormState; group: Group; words: string[] }) {
  const shown = group.fields.filter(({ field }) => isFound(field, words));
  const hasProblem = [...form.problems.keys()].some((path) =>
    group.fields.some((one) => path.startsWith(pathText(one.path))),
  );
  if (shown.length === 0) return null;
  const count = group.fields.reduce((sum, one) => sum + countBelow(form, one.path), 0);
  return (
    <Fold title={group.title} text={group.text} isOpen={words.length > 0 || hasProblem} count={count}>
      <div class={css.fields}>
        {shown.map((one) => (
          <FieldInput key={pathText(one.path)} form={form} {...one} />
        ))}
      </div>
    </Fold>
  );
}

interface FoldProps {
  title: string;
  text: string;
  isOpen: boolean;
  count: number;
  children: ComponentChildren;
}

/** A part that is closed until somebody needs it. What is in it is drawn when it is opened. */
function Fold({ title, text, isOpen, count, children }: FoldProps) {
  const [wasToggled, setToggled] = useState<boolean>();
  const isShown = wasToggled ?? isOpen;
  return (
    <details class={css.fold} open={isShown} onToggle={(event) => setToggled(event.currentTarget.open)}>
      <summary>
        <span class={css.title}>{title}</span>
        {count > 0 && <span class={css.count}>{count} set</span>}
        <span class={css.about}>{text}</span>
      </summary>
      {isShown && <div class={css.inside}>{children}</div>}
    </details>
  );
}

interface InputProps {
  form: FormState;
  field: Field;
  path: Path;
}

export function FieldInput({ form, field, path }: InputProps) {
  if (field.type === "objects") return <Items form={form} field={field} path={path} />;
  if (field.type === "object") return <Members form={form} field={field} path={path} />;
  const id = `field-${pathText(path)}`;
  const rule = form.ruleOf(path);
  const problems = form.problems.get(pathText(path)) ?? [];
  return (
    <div class={css.field} data-wrong={problems.length > 0 || undefined} data-wide={field.isLong}>
      <label for={id}>
        {field.label}
        {field.isRequired && <span class={css.required}> required</span>}
      </label>
      <Single form={form} field={field} path={path} id={id} rule={rule} isWrong={problems.length > 0} />
      <p class={css.help} id={`${id}-help`}>
        {field.text}
        {hasLongDefault(field, rule) && ` Default: ${presetOf(field, rule)}.`}
      </p>
      {rule && <p class={css.rule}>{rule.note}</p>}
      <Wrong id={`${id}-wrong`} problems={problems} />
    </div>
  );
}

function Wrong({ id, problems }: { id: string; problems: string[] }) {
  return (
    <div id={id} class={css.wrong} aria-live="polite">
      {problems.map((problem) => (
        <p key={problem}>{problem}</p>
      ))}
    </div>
  );
}

interface SingleProps extends InputProps {
  id: string;
  rule: FieldRule | undefined;
  isWrong: boolean;
}

function Single({ form, field, path, id, rule, isWrong }: SingleProps) {
  const given = valueAt(form.root, path);
  const common = {
    id,
    disabled: rule?.isLocked ?? false,
    "aria-invalid": isWrong || undefined,
    "aria-describedby": `${id}-help ${id}-wrong`,
  };
  const preset = presetOf(field, rule);
  const hint = !preset ? undefined : hasLongDefault(field, rule) ? "Default: see below" : `Default: ${preset}`;
  const choices = field.type === "boolean" ? ["true", "false"] : (rule?.options ?? field.choices);
  if (choices) {
    const text = given === undefined || given === null ? "" : plain(given);
    return (
      <select
        {...common}
        value={text}
        onChange={(event) => form.set(path, readText(field, event.currentTarget.value))}
      >
        <option value="">{preset ? `Default: ${worded(field, preset)}` : "Default"}</option>
        {[...new Set(text ? [...choices, text] : choices)].map((choice) => (
          <option key={choice} value={choice}>
            {worded(field, choice)}
          </option>
        ))}
      </select>
    );
  }
  if (field.type === "strings") {
    const lines = Array.isArray(given) ? given.map(plain).join("\n") : "";
    const read = (text: string): string[] => text.split("\n").filter((line) => line !== "");
    return (
      <textarea
        {...common}
        rows={2}
        placeholder={hint ?? "One per line"}
        value={lines}
        onChange={(event) => form.set(path, read(event.currentTarget.value))}
      />
    );
  }
  const names = field.refers ? form.namesOf(field.refers) : [];
  const text = {
    ...common,
    placeholder: hint ?? field.unit,
    autocomplete: "off" as const,
    spellcheck: false,
    value: given === undefined || given === null ? "" : plain(given),
    onInput: (event: { currentTarget: HTMLInputElement }) => form.set(path, readText(field, event.currentTarget.value)),
  };
  if (field.type === "integer" || field.type === "number") {
    const step = field.type === "number" ? "any" : undefined;
    return <input {...text} type="number" step={step} min={rule?.min ?? field.min} max={rule?.max ?? field.max} />;
  }
  if (field.isSecret) return <input {...text} type="password" />;
  if (names.length === 0) return <input {...text} type="text" />;
  return (
    <>
      <input {...text} type="text" list={`${id}-names`} />
      <datalist id={`${id}-names`}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

function presetOf(field: Field, rule: FieldRule | undefined): string {
  return rule?.default === undefined ? (field.default ?? "") : plain(rule.default);
}

/** More letters than a field shows in a narrow window. */
const LONG_DEFAULT = 24;

function hasLongDefault(field: Field, rule: FieldRule | undefined): boolean {
  return !field.choices && !rule?.options && field.type !== "boolean" && presetOf(field, rule).length > LONG_DEFAULT;
}

function plain(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function worded(field: Field, choice: string): string {
  if (field.choiceTitles) return field.choiceTitles[choice] ?? choice;
  if (field.type !== "boolean") return choice;
  return { true: "yes", false: "no" }[choice] ?? choice;
}

/** What somebody has typed, as the request has it. */
export function readText(field: Field, text: string): Json | undefined {
  if (text === "") return undefined;
  if (field.type === "boolean") return text === "true";
  if (field.type !== "integer" && field.type !== "number") return text;
  const number = Number(text);
  // The server says what is wrong with it, in its own words.
  return Number.isNaN(number) ? text : number;
}

function Members({ form, field, path }: InputProps) {
  const problems = form.problems.get(pathText(path)) ?? [];
  const isOpen = field.isCommon === true || countBelow(form, path) > 0 || problems.length > 0;
  return (
    <div class={css.nested} data-wide>
      <Fold title={field.label} text={field.text} isOpen={isOpen} count={countBelow(form, path)}>
        <div class={css.fields}>
          {(field.members ?? []).map((member) => (
            <FieldInput key={member.name} form={form} field={member} path={[...path, member.name]} />
          ))}
        </div>
      </Fold>
      <Wrong id={`field-${pathText(path)}-wrong`} problems={problems} />
    </div>
  );
}

function Items({ form, field, path }: InputProps) {
  const given = valueAt(form.root, path);
  const items = Array.isArray(given) ? given : [];
  const rule = form.ruleOf(path);
  const problems = form.problems.get(pathText(path)) ?? [];
  return (
    <fieldset class={css.items} data-wide>
      <legend>{field.label}</legend>
      <p class={css.help}>{field.text}</p>
      {rule && <p class={css.rule}>{rule.note}</p>}
      <Wrong id={`field-${pathText(path)}-wrong`} problems={problems} />
      {items.map((item, number) => (
        <Item key={number} form={form} field={field} path={[...path, number]} item={item} />
      ))}
      <button
        type="button"
        disabled={rule?.isLocked}
        aria-label={`Add to ${field.label}`}
        onClick={() => form.set([...path, items.length], {})}
      >
        Add
      </button>
    </fieldset>
  );
}

/** The members that most items need are beside each other; the others are behind a click. */
function Item({ form, field, path, item }: InputProps & { item: Json }) {
  const members = field.members ?? [];
  const isFirst = (member: Field, at: number): boolean =>
    member.type !== "object" && member.type !== "objects" && (member.isRequired === true || at < 2);
  const first = members.filter(isFirst);
  const others = members.filter((member) => !first.includes(member));
  const number = Number(path.at(-1)) + 1;
  const isOpen = isObject(item) && others.some((member) => member.name in item);
  const inputs = (some: Field[]) =>
    some.map((member) => <FieldInput key={member.name} form={form} field={member} path={[...path, member.name]} />);
  return (
    <div class={css.item} role="group" aria-label={`${field.label} ${number}`}>
      <div class={css.fields}>{inputs(first)}</div>
      {others.length > 0 && (
        <Fold title="More" text="" isOpen={isOpen} count={0}>
          <div class={css.fields}>{inputs(others)}</div>
        </Fold>
      )}
      <button
        type="button"
        class={css.remove}
        aria-label={`Remove ${field.label} ${number}`}
        onClick={() => form.set(path, undefined)}
      >
        Remove
      </button>
    </div>
  );
}
