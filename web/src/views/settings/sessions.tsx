// Where the user is signed in, and changing the password.
import { get, post, remove } from "../../api/client";
import { useChanges } from "../../parts/change";
import { ConfirmButton } from "../../parts/confirm";
import { textOf, useLoad } from "../../parts/load";
import { tell } from "../../parts/notices";
import { css as parts, Panel, Problem, Time } from "../../parts/parts";
import css from "./settings.module.css";

export function Sessions() {
  const changes = useChanges();
  const sessions = useLoad((signal) => get("/api/v1/me/sessions", { signal }), changes.version);
  const all = sessions.value?.sessions ?? [];
  return (
    <Panel title="Sessions">
      <p>Where you are signed in. Ending a session makes its tokens invalid at once.</p>
      <Problem error={changes.error ?? sessions.error} />
      <ul class={css.keys}>
        {all.map((one) => (
          <li key={one.id}>
            <strong>{programOf(one.client)}</strong> from {one.address}
            <span class={parts.quiet}>
              signed in <Time at={one.createdAt} />, ends <Time at={one.expiresAt} />
            </span>
            {one.current ? (
              <span class={parts.quiet}>this one</span>
            ) : (
              <ConfirmButton
                label="End"
                name={`End the session from ${one.address}, ${programOf(one.client)}`}
                question="End this session?"
                changes={changes}
                act={() => remove("/api/v1/me/sessions/{sessionId}", { path: { sessionId: one.id } })}
              >
                {programOf(one.client)} at {one.address} is signed out at once, and has to sign in again.
              </ConfirmButton>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Browsers with what they call themselves. Most also name those that they are compatible with, so the order matters. */
const BROWSERS: readonly [string, RegExp][] = [
  ["Edge", /\bEdg\/(\d+)/],
  ["Opera", /\bOPR\/(\d+)/],
  ["Firefox", /\bFirefox\/(\d+)/],
  ["Chrome", /\b(?:Headless)?Chrome\/(\d+)/],
  ["Safari", /\bVersion\/(\d+).* Safari\//],
];

/** A program by the name that it gives: of a browser the one that people know. */
export function programOf(client: string): string {
  for (const [name, pattern] of client.startsWith("Mozilla/") ? BROWSERS : []) {
    const version = pattern.exec(client)?.[1];
    if (version) return `${name} ${version}`;
  }
  return client.split(/[ /]/)[0] || "unknown program";
}

export function Password() {
  const changes = useChanges();
  const change = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const given = new FormData(form);
    const body = { currentPassword: textOf(given, "current"), newPassword: textOf(given, "next") };
    void changes.make(async () => {
      await post("/api/v1/me/password", { body });
      form.reset();
      tell("Your password is changed; sign in with the new one.");
    });
  };
  return (
    <Panel title="Password">
      <Problem error={changes.error} />
      <form class={css.create} onSubmit={change}>
        <label>
          Current password <input type="password" name="current" autocomplete="current-password" required />
        </label>
        <label>
          New password <input type="password" name="next" autocomplete="new-password" required />
        </label>
        <button>Change the password</button>
      </form>
    </Panel>
  );
}
