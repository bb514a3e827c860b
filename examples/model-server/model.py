"""A model server in plain Python, one program for both roles: the leader of a group answers requests and hands the work
to its workers, each of which holds a slice of the model. The model counts which word follows which in a short text.

Leaders and workers find each other by the variables of LeaderWorkerSet; nothing here knows of Fairlead.
"""

import http.server
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator

TEXT = """the ship sails over the sea and the sea sings to the ship and the wind sings to the sea
and the ship sails with the wind over the sea to the land where the wind sleeps and the ship sleeps"""
WORDS = TEXT.split()
VOCABULARY = sorted(set(WORDS))
SERVING_PORT, GROUP_PORT = 8000, 7000
SIZE, INDEX = int(os.environ["LWS_GROUP_SIZE"]), int(os.environ["LWS_WORKER_INDEX"])


def load_slice(number: int, of: int) -> dict[str, dict[str, int]]:
    """How often the words of one slice of the vocabulary follow each word."""
    mine = set(VOCABULARY[number::of])
    counts: dict[str, dict[str, int]] = {word: {} for word in VOCABULARY}
    for before, word in itertools.pairwise(WORDS):
        if word in mine:
            counts[before][word] = counts[before].get(word, 0) + 1
    return counts


def best(counts: dict[str, dict[str, int]], before: str, said: list[str]) -> tuple[int, str]:
    """The likeliest next word of a slice; one that was said often is less likely."""
    following = counts.get(before, {})
    return max(((10 * number - 9 * said.count(word), word) for word, number in following.items()), default=(-999, ""))


class Worker:
    """The leader's end of the connection to one worker."""

    def __init__(self, connection: socket.socket) -> None:
        self.file = connection.makefile("rw")
        self.lock = threading.Lock()
        self.index = int(self.file.readline())

    def ask(self, before: str, said: list[str]) -> tuple[int, str]:
        with self.lock:
            self.file.write(json.dumps([before, said]) + "\n")
            self.file.flush()
            answer = self.file.readline()
        if not answer:
            os._exit(1)  # a group without a worker is none: let all of it be made again
        score, word = json.loads(answer)
        return score, word


workers: list[Worker] = []


def generate(prompt: str, tokens: int) -> Iterator[str]:
    said = prompt.split()
    for _ in range(tokens):
        answers = [worker.ask(said[-1] if said else "the", said) for worker in workers]
        word = max(answers, default=(0, ""))[1]
        said.append(word)
        yield word


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536

    def do_GET(self) -> None:
        """Ready when every worker is there."""
        is_ready = len(workers) == SIZE - 1
        self.answer(200 if is_ready else 503, {"group": os.uname().nodename, "workers": [w.index for w in workers]})

    def do_POST(self) -> None:
        """`{"prompt": …, "tokens": …}`: the words one by one, as server-sent events."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Group", os.uname().nodename)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for word in generate(asked.get("prompt", ""), asked.get("tokens", 8)):
            self.chunk(f"data: {word}\n\n")
        self.chunk("")

    def chunk(self, text: str) -> None:
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing of every request."""


def lead() -> None:
    with socket.create_server(("", GROUP_PORT)) as server:
        threading.Thread(
            target=http.server.ThreadingHTTPServer(("", SERVING_PORT), Handler).serve_forever, daemon=True
        ).start()
        while True:
            workers.append(Worker(server.accept()[0]))
            print("worker", workers[-1].index, "came", flush=True)


def work() -> None:
    while True:
        try:
            leader = socket.create_connection((os.environ["LWS_LEADER_ADDRESS"], GROUP_PORT), timeout=10)
            break
        except OSError:
            time.sleep(0.05)
    leader.settimeout(None)
    counts = load_slice(INDEX - 1, SIZE - 1)
    file = leader.makefile("rw")
    file.write(f"{INDEX}\n")
    file.flush()
    for line in file:
        file.write(json.dumps(best(counts, *json.loads(line))) + "\n")
        file.flush()
    sys.exit("the leader is gone")


if __name__ == "__main__":
    lead() if INDEX == 0 else work()
