#!/usr/bin/env bash
# The test suite as CI runs it: on both cores, with everything that this machine can run. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system-packages.sh --if-possible
options=(-n 2 --dist loadgroup)
# As root on Debian all that the tests need can be had, so nothing may be left out.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then options+=(--nothing-skipped); fi
exec .venv/bin/python -m pytest "${options[@]}" "$@"
