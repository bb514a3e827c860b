// Server-sent events from the body of an answer. EventSource would hide the status of a refusal.
export interface Message {
  id: string;
  event: string;
  data: string;
}

/** Splits text that arrives in pieces into messages. */
export class MessageParser {
  private rest = "";
  private id = "";

  push(piece: string): Message[] {
    const blocks = (this.rest + piece).split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map((block) => this.parse(block));
  }

  private parse(block: string): Message {
    const message: Message = { id: this.id, event: "", data: "" };
    for (const line of block.split("\n")) {
      const colon = line.indexOf(": ");
      if (colon < 1) continue;
      const [name, value] = [line.slice(0, colon), line.slice(colon + 2)];
      if (name === "id") this.id = message.id = value;
      else if (name === "event") message.event = value;
      else if (name === "data") message.data += value;
    }
    return message;
  }
}
