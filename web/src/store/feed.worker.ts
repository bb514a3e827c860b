// The feed of all tabs of a browser. It belongs to one user: whoever joins with another name starts it anew.
import { Feed, type FeedRequest } from "./feed";

const ports = new Set<MessagePort>();
let user = "";
const feed = new Feed((message) => {
  for (const port of ports) port.postMessage(message);
});

function join(port: MessagePort, name: string): void {
  ports.add(port);
  if (name !== user || feed.state === "signed-out") {
    user = name;
    feed.start();
    return;
  }
  if (feed.hasListed) port.postMessage({ type: "all", rows: [...feed.rows.values()] });
  port.postMessage({ type: "state", state: feed.state });
}

function take(port: MessagePort, request: FeedRequest): void {
  if (request.type === "join") join(port, request.user);
  else if (request.type === "leave") ports.delete(port);
  else feed.end();
}

addEventListener("connect", (event) => {
  for (const port of (event as MessageEvent).ports) {
    port.onmessage = ({ data }: MessageEvent<FeedRequest>) => take(port, data);
  }
});
