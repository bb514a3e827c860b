"""Runs the API server in memory: `python -m tests.memory_api FOLDER` writes FOLDER/kubeconfig when it is ready."""

import argparse
import asyncio
import json
from pathlib import Path

from tests.memory_api.server import Connection, MemoryApi


async def serve(folder: Path, nodes: int) -> None:
    api = MemoryApi(nodes)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(api), "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    config = {
        "clusters": [{"name": "memory", "cluster": {"server": address}}],
        "users": [{"name": "memory", "user": {"token": "memory"}}],
        "contexts": [{"name": "memory", "context": {"cluster": "memory", "user": "memory"}}],
        "current-context": "memory",
    }
    part = folder / "kubeconfig.part"
    part.write_text(json.dumps(config))
    part.replace(folder / "kubeconfig")
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=4)
    given = parser.parse_args()
    asyncio.run(serve(given.folder, given.nodes))


if __name__ == "__main__":
    main()
