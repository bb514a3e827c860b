#!/usr/bin/env bash
# Builds the web page with the Node of the group `web`, which nothing else needs. Arguments go to scripts/build_web.py.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/npm ] || scripts/setup.sh --web
.venv/bin/python -m scripts.build_web "$@"
