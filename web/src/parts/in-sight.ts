// Links in one line, which scrolls on narrow screens: the current one comes into sight.
import { useEffect, useRef } from "preact/hooks";
import { path } from "../router";

export function useCurrentInSight(): { current: HTMLElement | null } {
  const line = useRef<HTMLElement>(null);
  useEffect(() => {
    const [box, link] = [line.current, line.current?.querySelector<HTMLElement>("[aria-current]")];
    if (box && link) box.scrollLeft = link.offsetLeft - (box.clientWidth - link.offsetWidth) / 2;
  }, [path.value, line.current]);
  return line;
}
