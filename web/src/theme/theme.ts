// Light, dark, or as the system has it. The choice is kept in this browser; it is the only thing that is.
import { signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const KEY = "theme";

export const theme = signal<Theme>(THEMES.find((name) => name === localStorage.getItem(KEY)) ?? "system");

export function applyTheme(chosen: Theme = theme.value): void {
  theme.value = chosen;
  localStorage.setItem(KEY, chosen);
  document.documentElement.style.colorScheme = chosen === "system" ? "light dark" : chosen;
}
