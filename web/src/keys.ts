// Keys of the whole page: `g` and a letter goes to a view, `/` searches, Ctrl K opens the palette, `?` shows them all.
import { useLayoutEffect } from "preact/hooks";
import { go } from "./router";
import { sections } from "./views/sections";

/** Every key and what it does, for the help. */
export function keys(): [string, string][] {
  return [
    ...sections().map((section): [string, string] => [`g ${section.key}`, section.title]),
    ["Ctrl k", "Go to a view or a workload by name"],
    ["/", "Search"],
    ["j, k", "Next and previous row of a list"],
    ["Enter", "Open the row"],
    ["x", "Select the row"],
    ["?", "Show these keys"],
  ];
}

/** Whether somebody types text, so that letters are not commands. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  if (document.querySelector("dialog[open]")) return true;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export interface KeyActions {
  showHelp: () => void;
  showPalette: () => void;
}

export function useKeys({ showHelp, showPalette }: KeyActions): void {
  // Not after the next frame: a key that is pressed as soon as the page is seen counts.
  useLayoutEffect(() => {
    let isGoing = false;
    const press = (event: KeyboardEvent): void => {
      if (event.key === "k" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        showPalette();
        return;
      }
      if (isTyping(event)) return;
      const target = isGoing ? sections().find((section) => section.key === event.key) : undefined;
      isGoing = event.key === "g";
      if (target) go(target.path);
      else if (event.key === "?") showHelp();
      else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("input[type=search]");
        if (!search) return;
        event.preventDefault();
        search.focus();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
