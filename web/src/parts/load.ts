// Loads something from the API for a view, again whenever its key changes.
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/client";

export interface Loaded<T> {
  value?: T;
  error?: ApiError;
}

export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, String(error));
}

/** Keeps the last value while the next one is loaded, so that a view does not flicker. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, key: string): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({});
  useEffect(() => {
    const stop = new AbortController();
    load(stop.signal).then(
      (value) => setLoaded({ value }),
      (error: unknown) => {
        if (!stop.signal.aborted) setLoaded((last) => ({ ...last, error: asApiError(error) }));
      },
    );
    return () => stop.abort();
  }, [key]);
  return loaded;
}

/** A text field of a form. */
export function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}
