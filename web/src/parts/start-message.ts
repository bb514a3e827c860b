// What the server says about a start, without the times that stand beside it.
const TIMES = /Starts about \S+ \S+ UTC(, very likely by \S+ \S+ UTC)?(: |\.|$)/;

export function withoutTimes(message: string): string {
  return message.replace(TIMES, "").trim();
}
