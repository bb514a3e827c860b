#!/usr/bin/env bash
# The tests of containers by containerd, as root: nerdctl, by which the server asks it, is built once into .tools from its Go
# module (some minutes); containerd itself is Debian's, started by the tests on a socket and a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
  echo "containerd needs root: run this as root, or leave these tests to those who can" >&2
  exit 1
fi
scripts/system-packages.sh --if-possible
place=$PWD/.tools/containerd
if [ ! -x "$place/nerdctl" ]; then PYTHONPATH=. .venv/bin/python scripts/build_nerdctl.py "$place"; fi
export PATH=$place:$PATH
exec .venv/bin/pytest -m containerd tests/e2e/test_container_engines.py "$@"
