// The frames of a session in a pod: a channel, a length of four bytes, and the content.
export const Channel = { input: 0, size: 2, output: 1, error: 2, exit: 3 } as const;

const HEAD = 5;

export function encodeFrame(channel: number, content: Uint8Array<ArrayBuffer> | string): Uint8Array<ArrayBuffer> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const frame = new Uint8Array(HEAD + bytes.length);
  const view = new DataView(frame.buffer);
  view.setUint8(0, channel);
  view.setUint32(1, bytes.length);
  frame.set(bytes, HEAD);
  return frame;
}

export interface Frame {
  channel: number;
  content: Uint8Array;
}

/** Takes pieces as they arrive, and gives the frames that are complete. */
export class FrameReader {
  private rest = new Uint8Array(0);

  push(piece: Uint8Array): Frame[] {
    const bytes = new Uint8Array(this.rest.length + piece.length);
    bytes.set(this.rest);
    bytes.set(piece, this.rest.length);
    const view = new DataView(bytes.buffer);
    const frames: Frame[] = [];
    let at = 0;
    while (bytes.length - at >= HEAD) {
      const length = view.getUint32(at + 1);
      if (bytes.length - at < HEAD + length) break;
      frames.push({ channel: view.getUint8(at), content: bytes.slice(at + HEAD, at + HEAD + length) });
      at += HEAD + length;
    }
    this.rest = bytes.slice(at);
    return frames;
  }
}
