"""`python -m deploy.cluster …`: a real Kubernetes with KAI on this machine. The Makefile's cluster targets call it.

docs/cluster.md says what it is and how to use it.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

from deploy.cluster import build, cluster, control
from deploy.cluster.api import Api
from deploy.cluster.errors import ClusterError
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes, remove_nodes
from deploy.cluster.options import OPTIONS, add, add_pool, drop
from deploy.cluster.parts import PARTS, up_to
from deploy.cluster.sandbox import first_process

FOLDER = Path(__file__).parents[2] / ".tools" / "cluster"


def main() -> int:
    asked = parse()
    code: int = asked.act(asked)
    return code


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.cluster", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the cluster keeps its files")
    # The same after the verb, where `make ARGS=…` puts it.
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("--folder", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    verbs = parser.add_subparsers(required=True)
    starting = verbs.add_parser("up", help="build what is missing, start, wait until it is ready", parents=[folder])
    starting.add_argument("--parts", choices=PARTS, default=PARTS[-1], help="how much of it (default: all)")
    starting.add_argument("--pools", default="", help="node pools that get a scheduler of their own: a,b")
    starting.add_argument(
        "--with", dest="options", type=names_of(OPTIONS), default=(), help=f"also: {', '.join(OPTIONS)}"
    )
    starting.add_argument("--nodes", type=int, default=0, help="so many nodes without a kubelet, 8 GPUs each")
    starting.set_defaults(act=run_up)
    verbs.add_parser("down", help="end it and remove all it made", parents=[folder]).set_defaults(act=run_down)
    verbs.add_parser("status", help="which programs run", parents=[folder]).set_defaults(act=run_status)
    verbs.add_parser("env", help="the shell's words to reach it", parents=[folder]).set_defaults(act=run_env)
    building = verbs.add_parser("build", help="build what is missing", parents=[folder])
    building.add_argument("--parts", choices=PARTS, default=PARTS[-1])
    optional = [name for name in build.NEEDED if name not in PARTS]
    building.add_argument(
        "--with", dest="options", type=names_of(optional), default=(), help=f"also: {', '.join(optional)}"
    )
    building.set_defaults(act=run_build)
    for verb, act in (("add", run_add), ("drop", run_drop)):
        changing = verbs.add_parser(verb, help=f"{verb} a part that not every cluster has", parents=[folder])
        changing.add_argument("option", choices=sorted(OPTIONS))
        changing.set_defaults(act=act)
    for verb, act in (("kill", run_kill), ("stop", run_stop), ("start", run_start)):
        breaking = verbs.add_parser(
            verb, help=f"{verb} one program" + (" -9; it is started again" * (verb == "kill")), parents=[folder]
        )
        breaking.add_argument("program")
        breaking.set_defaults(act=act)
    entering = verbs.add_parser(
        "enter", help="run a command inside, where containers and the network are", parents=[folder]
    )
    entering.add_argument("command", nargs=argparse.REMAINDER)
    entering.set_defaults(act=run_enter)
    nodes = verbs.add_parser(
        "nodes", help="make so many nodes without a kubelet in a pool; 0 removes those of the pool", parents=[folder]
    )
    nodes.add_argument("count", type=int)
    nodes.add_argument("--gpus", type=int, default=8)
    nodes.add_argument("--cpu", default="64")
    nodes.add_argument("--memory", default="512Gi")
    nodes.add_argument("--pool", default="")
    nodes.set_defaults(act=run_nodes)
    return parser.parse_args()


def names_of(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Reads some of these names, with commas between them."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(name for name in text.split(",") if name)
        if wrong := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(wrong)} is none of {', '.join(known)}")
        return names

    return read


def run_up(asked: argparse.Namespace) -> int:
    began = time.monotonic()
    pools = [name for name in asked.pools.split(",") if name]
    running = cluster.up(asked.folder, asked.parts, pools)
    for name in pools:
        # Nothing, unless the cluster ran before without it.
        add_pool(running, name)
    for name in asked.options:
        add(running, name)
    if asked.nodes:
        set_nodes(running.api(), asked.nodes, Shape())
    sys.stderr.write(f"ready after {time.monotonic() - began:.1f} s\n")
    sys.stdout.write(f"export KUBECONFIG={running.kubeconfig}\n")
    return 0


def run_down(asked: argparse.Namespace) -> int:
    cluster.down(asked.folder)
    return 0


def run_status(asked: argparse.Namespace) -> int:
    text, is_whole = cluster.describe(asked.folder)
    sys.stdout.write(text)
    return 0 if is_whole else 1


def run_env(asked: argparse.Namespace) -> int:
    sys.stdout.write(f"export KUBECONFIG={running_in(asked.folder).kubeconfig}\n")
    return 0


def run_build(asked: argparse.Namespace) -> int:
    build.build((*up_to(asked.parts), *asked.options))
    sys.stdout.write(f"{build.folder()}\n")
    return 0


def run_add(asked: argparse.Namespace) -> int:
    cluster.require_root()
    add(running_in(asked.folder), asked.option)
    return 0


def run_drop(asked: argparse.Namespace) -> int:
    cluster.require_root()
    drop(running_in(asked.folder), asked.option)
    return 0


def running_in(folder: Path) -> cluster.Cluster:
    found = cluster.find(folder.absolute())
    if found is None:
        raise ClusterError(f"no cluster runs in {folder}; make cluster-up starts one")
    return found


def run_kill(asked: argparse.Namespace) -> int:
    control.kill(asked.folder.absolute(), asked.program)
    return 0


def run_stop(asked: argparse.Namespace) -> int:
    control.stop(asked.folder.absolute(), asked.program)
    return 0


def run_start(asked: argparse.Namespace) -> int:
    control.start_again(asked.folder.absolute(), asked.program)
    return 0


def run_enter(asked: argparse.Namespace) -> int:
    cluster.require_root()
    pid = first_process(asked.folder.absolute())
    if pid is None:
        raise ClusterError(f"no cluster runs in {asked.folder}; make cluster-up starts one")
    command = [word for word in asked.command if word != "--"] or ["bash"]
    os.execvp("nsenter", ["nsenter", f"--target={pid}", "--all", *command])


def run_nodes(asked: argparse.Namespace) -> int:
    shape = Shape(asked.gpus, asked.cpu, asked.memory, pool=asked.pool)
    set_nodes(running_in(asked.folder).api(), asked.count, shape)
    return 0


def set_nodes(api: Api, count: int, shape: Shape) -> None:
    """Those of that pool, counted up or removed until there are so many."""
    prefix = f"{shape.pool or 'node'}-"
    there = sorted(name for name in observe_nodes(api) if name.startswith(prefix))
    wanted = [f"{prefix}{at}" for at in range(1, count + 1)]
    remove_nodes(api, [name for name in there if name not in wanted])
    add_nodes(api, [name for name in wanted if name not in there], shape)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ClusterError as error:
        sys.exit(str(error))
