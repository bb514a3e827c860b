// Theme, account, access keys for scripts.
import { useState } from "preact/hooks";
import { type ApiError, get, post, remove, type Schemas } from "../../api/client";
import { session, signOut } from "../../api/session";
import { useChanges } from "../../parts/change";
import { ConfirmButton } from "../../parts/confirm";
import { asApiError, textOf, useLoad } from "../../parts/load";
import { CopyButton, css as parts, Panel, Problem, Time, ViewTitle } from "../../parts/parts";
import { endFeed } from "../../store/workloads";
import { applyTheme, theme, THEMES } from "../../theme/theme";
import css from "./settings.module.css";
import { Password, Sessions } from "./sessions";

const NAMES = { system: "As the system", light: "Light", dark: "Dark" };

export function Settings() {
  const [error, setError] = useState<ApiError>();
  // Applications have a client id and a secret instead.
  const isUser = session.value?.subjectType === "User";
  const leave = async (): Promise<void> => {
    try {
      await signOut();
      endFeed();
    } catch (caught) {
      setError(asApiError(caught));
    }
  };
  return (
    <div class={parts.page}>
      <ViewTitle>Settings</ViewTitle>
      <Panel title="Account">
        <p>
          Signed in as <strong>{session.value?.username}</strong>
          {session.value?.isAdministrator && ", an administrator"}.
          {!isUser && " It is an application: scripts sign in with its client id and its secret."}
        </p>
        <Problem error={error} />
        <button type="button" onClick={() => void leave()}>
          Sign out
        </button>
      </Panel>
      <Panel title="Theme">
        <fieldset class={css.choice}>
          <legend class={parts.hidden}>Theme</legend>
          {THEMES.map((name) => (
            <label key={name}>
              <input type="radio" name="theme" checked={theme.value === name} onChange={() => applyTheme(name)} />{" "}
              {NAMES[name]}
            </label>
          ))}
        </fieldset>
      </Panel>
      {isUser && <Keys />}
      <Sessions />
      {isUser && <Password />}
    </div>
  );
}

function Keys() {
  const changes = useChanges();
  const [made, setMade] = useState<Schemas["NewKeyView"]>();
  const keys = useLoad((signal) => get("/api/v1/access-keys", { signal }), changes.version);
  const create = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const name = textOf(new FormData(form), "name");
    void changes.make(async () => {
      setMade(await post("/api/v1/access-keys", { body: { name } }));
      form.reset();
    });
  };
  return (
    <Panel title="Access keys">
      <p>With an access key, a script acts as you: it exchanges the key for tokens that last for a while.</p>
      <Problem error={changes.error ?? keys.error} />
      <ul class={css.keys}>
        {(keys.value?.accessKeys ?? []).map((key) => (
          <li key={key.id}>
            <strong>{key.name}</strong> <code>{key.clientId}</code>
            <span class={parts.quiet}>
              created <Time at={key.createdAt} />
            </span>
            <ConfirmButton
              label="Delete"
              name={`Delete ${key.name}`}
              question={`Delete the access key ${key.name}?`}
              changes={changes}
              act={() => remove("/api/v1/access-keys/{accessKeyId}", { path: { accessKeyId: key.id } })}
            >
              Scripts that use it are refused from now on, with the tokens that they have. This cannot be undone.
            </ConfirmButton>
          </li>
        ))}
      </ul>
      {made && (
        <p role="status" class={css.secret}>
          The secret of {made.name}, shown only now: <code>{made.clientSecret}</code>{" "}
          <CopyButton text={made.clientSecret} />
        </p>
      )}
      <form class={css.create} onSubmit={create}>
        <label>
          Name <input name="name" required />
        </label>
        <button>Create an access key</button>
      </form>
    </Panel>
  );
}
