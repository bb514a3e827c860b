// Changes that a view makes: their error, and a version that grows with each success, so that lists are loaded again.
import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { asApiError } from "./load";

export interface Changes {
  version: string;
  error: ApiError | undefined;
  /** Makes a change; true if it succeeded. */
  make: (work: () => Promise<unknown>) => Promise<boolean>;
}

export function useChanges(): Changes {
  const [version, setVersion] = useState(0);
  const [error, setError] = useState<ApiError>();
  const make = async (work: () => Promise<unknown>): Promise<boolean> => {
    setError(undefined);
    try {
      await work();
      setVersion((last) => last + 1);
      return true;
    } catch (caught) {
      setError(asApiError(caught));
      return false;
    }
  };
  return { version: String(version), error, make };
}
