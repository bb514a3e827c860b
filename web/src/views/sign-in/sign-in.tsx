// Signing in with a password or with the provider of identities; a one-time link of `fairlead ui` never comes here.
import { useState } from "preact/hooks";
import { type ApiError, get } from "../../api/client";
import { hasExpired, signIn } from "../../api/session";
import { asApiError, textOf, useLoad } from "../../parts/load";
import { css as parts, Problem, ViewTitle } from "../../parts/parts";
import { query, setQuery } from "../../router";
import css from "./sign-in.module.css";

export function SignIn() {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await signIn(textOf(form, "username"), textOf(form, "password"));
      setQuery({ link: "" });
    } catch (caught) {
      setError(asApiError(caught));
      setBusy(false);
    }
  };
  return (
    <main class={css.box}>
      <ViewTitle>Sign in to Fairlead</ViewTitle>
      {hasExpired.value && <p role="status">Your session has ended. Sign in to continue where you were.</p>}
      {query.value.get("link") === "expired" && (
        <p role="status">This link was already used or has expired; `fairlead ui` opens a new one.</p>
      )}
      <form class={css.form} onSubmit={(event) => void submit(event)}>
        <label>
          User name
          <input name="username" autocomplete="username" required autofocus />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
        <Problem error={error} />
        <button data-main disabled={isBusy}>
          Sign in
        </button>
      </form>
      <Provider />
      <p>
        On the machine of the server, <code>fairlead ui</code> signs you in without a password.
      </p>
    </main>
  );
}

/** The way to the provider, if the server has one. It leads back to where the page is now. */
function Provider() {
  const { value } = useLoad((signal) => get("/api/v1/sign-on", { signal }), "");
  if (!value?.enabled) return null;
  const back = new URLSearchParams({ page: location.pathname + location.search });
  return (
    <p>
      <a class={parts.button} href={`${value.startPath}?${back.toString()}`}>
        Sign in with {value.name}
      </a>
    </p>
  );
}
