// Parts that are loaded when they are first shown.
import { type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import css from "./parts.module.css";

export function later<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return function Later(props: P) {
    const [part, setPart] = useState<{ view?: ComponentType<P>; error?: string }>({});
    useEffect(() => {
      load().then(
        (view) => setPart({ view }),
        // A newer version of the page may have replaced its files.
        (error: unknown) => setPart({ error: String(error) }),
      );
    }, []);
    if (part.view) return h(part.view, props);
    if (!part.error) return <p class={css.part}>Loading…</p>;
    return (
      <p class={css.part} role="alert">
        This part of the page could not be loaded.{" "}
        <button type="button" onClick={() => window.location.reload()}>
          Load the page again
        </button>
      </p>
    );
  };
}
