"""A registry of images for tests: the few requests by which a runtime pulls, answered to who knows the password."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.e2e.container_server import IMAGE, ContainerServer


class Registry:
    """Holds one image, `box:1`, behind a name and a password."""

    def __init__(self, folder: Path, user: str, password: str) -> None:
        self.layout = folder / "layout"
        self._allowed = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"127.0.0.1:{self._server.server_port}"
        #: While it is not set, whoever asks for a layer waits; and whether somebody has.
        self.gives = threading.Event()
        self.gives.set()
        self.is_asked = threading.Event()
        self.configuration = folder / "registries.conf"
        self.configuration.write_text(f'[[registry]]\nlocation = "{self.address}"\ninsecure = true\n')

    def __enter__(self) -> "Registry":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gives.set()
        self._server.shutdown()
        self._server.server_close()

    def hold(self) -> None:
        """Give no layer until `gives` is set."""
        self.gives.clear()
        self.is_asked.clear()

    def fill(self, containers: ContainerServer, image: str = IMAGE) -> None:
        containers.podman("save", "--format=oci-dir", "--output", str(self.layout), image)

    def _find(self, path: str) -> tuple[str, bytes]:
        """The type and content of what is asked for; raises OSError or KeyError where there is none."""
        if path == "/v2/":
            return "application/json", b"{}"
        kind, _, name = path.removeprefix("/v2/box/").partition("/")
        if kind == "manifests" and not name.startswith("sha256:"):
            (described,) = json.loads((self.layout / "index.json").read_bytes())["manifests"]
            name = described["digest"]
        content = (self.layout / "blobs" / "sha256" / name.removeprefix("sha256:")).read_bytes()
        return "application/vnd.oci.image.manifest.v1+json" if kind == "manifests" else "application/octet-stream", (
            content
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.headers.get("Authorization") != registry._allowed:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="images"')
                    self.end_headers()
                    return
                if "/blobs/" in self.path:
                    registry.is_asked.set()
                    registry.gives.wait()
                try:
                    kind, content = registry._find(self.path)
                except (OSError, KeyError, ValueError):
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        return Answers
