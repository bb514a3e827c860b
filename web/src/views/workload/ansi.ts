// Colours of terminals in log lines. Other control sequences are left out.
export interface Span {
  text: string;
  /** 0 to 15; undefined is the usual colour. */
  color?: number;
  isBold?: boolean;
}

const CONTROL = /[\x00-\x08\x0b-\x1f]/;
const SEQUENCE = /\x1b\[([0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f]/g;

export function parseLine(line: string): Span[] {
  if (!CONTROL.test(line)) return [{ text: line }];
  const spans: Span[] = [];
  let style: Omit<Span, "text"> = {};
  let start = 0;
  const take = (end: number): void => {
    if (end > start) spans.push({ text: line.slice(start, end), ...style });
  };
  for (const found of line.matchAll(SEQUENCE)) {
    take(found.index);
    start = found.index + found[0].length;
    if (found[2] === "m") style = styled(style, found[1] ?? "");
  }
  take(line.length);
  return spans;
}

function styled(style: Omit<Span, "text">, codes: string): Omit<Span, "text"> {
  const next = { ...style };
  for (const code of codes.split(";").map(Number)) {
    if (code === 0) return {};
    if (code === 1) next.isBold = true;
    else if (code >= 30 && code <= 37) next.color = code - 30;
    else if (code >= 90 && code <= 97) next.color = code - 82;
    else if (code === 39) delete next.color;
  }
  return next;
}

export const plainText = (line: string): string => (CONTROL.test(line) ? line.replace(SEQUENCE, "") : line);
