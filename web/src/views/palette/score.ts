// Which names answer what somebody types.

/** How well a text answers the words: 0 is not at all; the beginning of the title counts most. */
export function score(title: string, note: string, words: readonly string[]): number {
  const [name, all] = [title.toLowerCase(), `${title} ${note}`.toLowerCase()];
  if (!words.every((word) => all.includes(word))) return 0;
  const first = words[0] ?? "";
  return name.startsWith(first) ? 3 : name.includes(first) ? 2 : 1;
}
