// Parts that are loaded when they are first shown.
import { type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";

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
    const text = part.error ? "This part of the page could not be loaded. Load the page again." : "Loading…";
    return h("p", { style: { padding: "1rem" }, role: part.error ? "alert" : undefined }, text);
  };
}
