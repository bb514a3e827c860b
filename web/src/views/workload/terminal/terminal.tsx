// A terminal in a pod: a shell in it, over the same session that `fairlead exec` has. Loaded when a terminal is opened.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Schemas, socketOf } from "../../../api/client";
import { css as parts, Empty } from "../../../parts/parts";
import { Channel, encodeFrame, FrameReader } from "./frames";
import { ownStyles } from "./styles";
import css from "./terminal.module.css";

const SHELL = ["sh", "-c", "command -v bash >/dev/null && exec bash; exec sh"];
const THEME = { background: "#14171a", foreground: "#e6e8eb", cursor: "#6cc0ea" };
/** Codes of a closing above this are the HTTP status of a refusal. */
const REFUSED = 4000;

export function TerminalView({ id, pods }: { id: string; pods: Schemas["PodView"][] }) {
  const running = pods.filter((pod) => pod.k8sPhase === "Running");
  const [chosen, setPod] = useState("");
  const [attempt, setAttempt] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const [ending, setEnding] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const pod = running.find((one) => one.name === chosen)?.name ?? running[0]?.name ?? "";
  useEffect(() => {
    if (!box.current || !pod) return;
    setEnding("");
    setOpen(false);
    return openTerminal(box.current, id, pod, { onOpen: () => setOpen(true), onEnd: setEnding });
  }, [id, pod, attempt]);
  if (!pod && !ending) {
    return <Empty>A terminal needs a running pod, and the workload has none now.</Empty>;
  }
  return (
    <section aria-label="Terminal" class={css.terminal}>
      <div class={parts.choices}>
        <select aria-label="Pod" value={pod} onChange={(event) => setPod(event.currentTarget.value)}>
          {running.map((one) => (
            <option key={one.id}>{one.name}</option>
          ))}
        </select>
        <span class={parts.quiet} role="status">
          {ending || (isOpen ? "Connected" : "Connecting…")}
        </span>
        {ending && pod && (
          <button type="button" onClick={() => setAttempt(attempt + 1)}>
            Open again
          </button>
        )}
      </div>
      <div class={css.screen} ref={box} />
    </section>
  );
}

interface Watcher {
  onOpen: () => void;
  onEnd: (why: string) => void;
}

/** Opens a shell and returns what ends it. */
function openTerminal(box: HTMLElement, id: string, pod: string, { onOpen, onEnd }: Watcher): () => void {
  const styles = ownStyles();
  const terminal = new Terminal({
    documentOverride: styles.document,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: 13,
    screenReaderMode: true,
    theme: THEME,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  styles.during(() => terminal.open(box));
  fit.fit();
  const socket = openSocket(id, pod, terminal);
  const send = (channel: number, content: string): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(encodeFrame(channel, content));
  };
  socket.onopen = onOpen;
  const frames = new FrameReader();
  let ending = "";
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    for (const { channel, content } of frames.push(new Uint8Array(data))) {
      if (channel === Channel.exit) ending = `The shell has ended with exit code ${new TextDecoder().decode(content)}`;
      else terminal.write(content);
    }
  };
  socket.onclose = (event) => onEnd(ending || (event.code > REFUSED ? event.reason : "The connection has ended"));
  terminal.onData((text) => send(Channel.input, text));
  terminal.onResize(({ cols, rows }) => send(Channel.size, `${cols}x${rows}`));
  const sizes = new ResizeObserver(() => fit.fit());
  sizes.observe(box);
  terminal.focus();
  return () => {
    socket.onclose = null;
    socket.close();
    sizes.disconnect();
    terminal.dispose();
    styles.remove();
  };
}

function openSocket(id: string, pod: string, terminal: Terminal): WebSocket {
  const words: [string, string][] = SHELL.map((word) => ["command", word]);
  const size: [string, string][] = [
    ["columns", String(terminal.cols)],
    ["rows", String(terminal.rows)],
  ];
  const query = new URLSearchParams([...words, ["pod", pod], ["tty", "true"], ["stdin", "true"], ...size]);
  const socket = socketOf(`/api/v1/workloads/${encodeURIComponent(id)}/exec?${query}`);
  socket.binaryType = "arraybuffer";
  return socket;
}
