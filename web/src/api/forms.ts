// The forms of all kinds, which the build makes from the server's declarations. Each is loaded when it is needed.
import type { Field } from "../parts/form/fields";

export interface KindForm {
  title: string;
  rest: string;
  noun: string;
  /** Members of a request beside its spec. */
  outsideSpec: string[];
  /** The parts of a policy, and the member of the spec that each is about. */
  policySections: { name: string; member: string }[];
  fields: Field[];
}

const loaders = import.meta.glob<KindForm>("../generated/forms/*.json", { import: "default" });

export async function loadForm(rest: string): Promise<KindForm> {
  const load = loaders[`../generated/forms/${rest}.json`];
  if (!load) throw new Error(`There is no form for ${rest}`);
  return load();
}
