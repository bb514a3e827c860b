// Numbers and times as people read them.
const UNITS: [string, number][] = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
];

/** A span of seconds in its largest unit: 45 s, 12 min, 3 h, 5 d. */
export function span(seconds: number): string {
  const size = Math.max(0, seconds);
  for (const [unit, length] of UNITS) {
    if (size >= length) return `${Math.floor(size / length)} ${unit}`;
  }
  return `${Math.floor(size)} s`;
}

export function ago(at: number, now: number): string {
  return at > now + 1000 ? `in ${span((at - now) / 1000)}` : `${span((now - at) / 1000)} ago`;
}

/** At most two digits after the point, none if they are zeros. */
export function amount(value: number): string {
  return String(Math.round(value * 100) / 100);
}

export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}

/** A number of GPUs, which may be a part of one. */
export function countGpus(gpus: number): string {
  return `${amount(gpus)} ${gpus === 1 ? "GPU" : "GPUs"}`;
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
export const exactTime = (at: number): string => exact.format(at);
