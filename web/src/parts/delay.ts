// Waits until somebody pauses, so that a request is not sent for every key.
import { useEffect, useState } from "preact/hooks";

/** The value after it has stayed the same for a moment. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
