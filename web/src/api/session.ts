// Who is signed in. The cookie is out of reach of scripts; the page knows only the name and the token for writes.
import { signal } from "@preact/signals";
import { get, post, remove, type Schemas, setCsrfToken, whenSignedOut } from "./client";

/** Undefined until the server has answered, null if nobody is signed in. */
export const session = signal<Schemas["SessionView"] | null | undefined>(undefined);
/** Whether somebody was signed in on this page before. */
export const hasExpired = signal(false);

function enter(view: Schemas["SessionView"]): void {
  setCsrfToken(view.csrfToken);
  hasExpired.value = false;
  session.value = view.username ? view : null;
}

export async function loadSession(): Promise<void> {
  enter(await get("/api/v1/session"));
}

export async function signIn(username: string, password: string): Promise<void> {
  enter(await post("/api/v1/session", { body: { username, password } }));
}

export async function signOut(): Promise<void> {
  await remove("/api/v1/session");
  session.value = null;
}

/** Whether the user may do this somewhere, such as `project:update`. The server decides where. */
export function may(permission: string): boolean {
  const current = session.value;
  return current?.isAdministrator === true || current?.permissions.includes(permission) === true;
}

whenSignedOut(() => {
  if (session.value) hasExpired.value = true;
  session.value = null;
});
