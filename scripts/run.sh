#!/usr/bin/env bash
# The first minute: one training from submission to its output, then what to try next. Called by `make run`.
set -uo pipefail
cd "$(dirname "$0")/.."
.venv/bin/fairlead run -- python3 -c "print('hello from a training')"
code=$?
echo
echo "Try next:  .venv/bin/fairlead demo        (two teams share GPUs; takes a few seconds)"
echo "Look:      .venv/bin/fairlead training list        .venv/bin/fairlead describe NAME"
echo "Page:      .venv/bin/fairlead ui        ($(.venv/bin/fairlead ui --plain))"
echo "Stop:      .venv/bin/fairlead server stop"
exit $code
