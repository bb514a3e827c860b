// A form's fields as the server declares them, and how they are grouped: what most people set comes first.
import type { Path } from "./values";

export interface Field {
  name: string;
  label: string;
  text: string;
  type: "boolean" | "integer" | "number" | "string" | "quantity" | "object" | "objects" | "strings";
  unit?: string;
  default?: string;
  isRequired?: boolean;
  isCommon?: boolean;
  isSecret?: boolean;
  /** The kind of object that it names. */
  refers?: string;
  key?: string;
  choices?: string[];
  /** What choices are called, if their values are ids. */
  choiceTitles?: Record<string, string>;
  min?: number;
  max?: number;
  members?: Field[];
  /** Whether it is the spec of the pods of one role. */
  isRole?: boolean;
  /** Whether it can be a long text. */
  isLong?: boolean;
}

/** A field and where its value is. */
export interface Placed {
  field: Field;
  path: Path;
}

export interface Group {
  title: string;
  text: string;
  /** The member that the group is about; none for the fields beside the objects. */
  path: Path;
  fields: Placed[];
}

export interface Layout {
  common: Placed[];
  groups: Group[];
  roles: Placed[];
}

const isGroup = (field: Field): boolean => field.type === "object" && !field.isRole && !field.isCommon;

/** The fields of a spec or of one role, in groups. */
export function layOut(fields: readonly Field[], path: Path = []): Layout {
  const place = (field: Field, at: Path = path): Placed => ({ field, path: [...at, field.name] });
  const common = fields.flatMap((field) => {
    if (field.isCommon) return [place(field)];
    const members = isGroup(field) ? (field.members ?? []) : [];
    return members.filter((member) => member.isCommon).map((member) => place(member, [...path, field.name]));
  });
  const general = fields.filter((field) => !field.isCommon && !field.isRole && !isGroup(field));
  const groups = fields.filter(isGroup).map((field) => ({
    title: field.label,
    text: field.text,
    path: [...path, field.name],
    fields: (field.members ?? [])
      .filter((member) => !member.isCommon)
      .map((member) => place(member, [...path, field.name])),
  }));
  return {
    common,
    groups: [
      { title: "General", text: "", path, fields: general.map((field) => place(field)) },
      ...groups,
    ].filter((group) => group.fields.length > 0),
    roles: fields.filter((field) => field.isRole).map((field) => place(field)),
  };
}

/** Whether a search finds a field: in its name, its label or what it means. */
export function isFound(field: Field, words: readonly string[]): boolean {
  const text = `${field.name} ${field.label} ${field.text}`.toLowerCase();
  return words.every((word) => text.includes(word)) || (field.members ?? []).some((member) => isFound(member, words));
}
