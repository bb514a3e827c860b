"""A tiny model that answers whether a text is glad or sad, in plain Python: POST /predict with {"text": ...}.

The version of its words is a variable, so that an update can be seen. Nothing here knows of Fairlead.
"""

import http.server
import json
import os

WORDS = {"good": 1, "great": 2, "fine": 1, "bad": -1, "awful": -2, "slow": -1}
if os.environ.get("MODEL_VERSION", "1") != "1":
    WORDS |= {"seasick": -2, "sunny": 2}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer({"version": os.environ.get("MODEL_VERSION", "1"), "pod": os.uname().nodename})

    def do_POST(self) -> None:
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        score = sum(WORDS.get(word, 0) for word in text.lower().split())
        self.answer({"label": "glad" if score > 0 else "sad" if score < 0 else "neither", "score": score})

    def answer(self, said: dict[str, object]) -> None:
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are counted by the proxy."""


http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
