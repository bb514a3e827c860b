// The visible part of a long list of rows of one height.
import { useEffect, useState } from "preact/hooks";

const SPARE = 4;

export interface Slice {
  first: number;
  last: number;
}

export function visibleSlice(top: number, height: number, rowHeight: number, total: number): Slice {
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
  const last = Math.min(total, Math.ceil((top + height) / rowHeight) + SPARE);
  return { first: Math.min(first, last), last };
}

export function useVisible(box: { current: HTMLElement | null }, rowHeight: number, total: number): Slice {
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  return visibleSlice(view.top, view.height, rowHeight, total);
}
