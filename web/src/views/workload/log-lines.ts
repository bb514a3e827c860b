// The lines of a log while they arrive. Only the last ones are kept, so that a log without end does not fill the memory.
export const MOST_LINES = 100_000;

export class LogLines {
  readonly lines: string[] = [];
  /** How many lines were dropped at the beginning. */
  dropped = 0;
  private rest = "";

  push(piece: string): void {
    const parts = (this.rest + piece).split("\n");
    this.rest = parts.pop() ?? "";
    for (const part of parts) this.lines.push(part.endsWith("\r") ? part.slice(0, -1) : part);
    // In large steps: moving a hundred thousand lines for every new one would stall the page.
    if (this.lines.length > MOST_LINES * 1.1) {
      const surplus = this.lines.length - MOST_LINES;
      this.lines.splice(0, surplus);
      this.dropped += surplus;
    }
  }

  /** A last line without a line break counts when the log ends. */
  end(): void {
    if (this.rest) this.lines.push(this.rest);
    this.rest = "";
  }
}

/** The lines that have a text, found a slice at a time, so that a long log does not hold up the page. */
export class LogSearch {
  readonly found: string[] = [];
  private next = 0;
  private dropped: number;

  constructor(
    private readonly log: LogLines,
    private readonly wanted: string,
    private readonly plain: (line: string) => string,
  ) {
    this.dropped = log.dropped;
  }

  /** Looks at the next lines; true if there are more. */
  advance(most: number): boolean {
    // Lines that were dropped at the beginning move the others.
    this.next = Math.max(0, this.next - (this.log.dropped - this.dropped));
    this.dropped = this.log.dropped;
    const end = Math.min(this.log.lines.length, this.next + most);
    for (; this.next < end; this.next++) {
      const line = this.log.lines[this.next] ?? "";
      if (this.plain(line).toLowerCase().includes(this.wanted)) this.found.push(line);
    }
    return this.next < this.log.lines.length;
  }
}
