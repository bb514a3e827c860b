#!/usr/bin/env bash
# The web page: its style, types and unit tests, then its tests in Debian's Chromium. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system-packages.sh --if-possible
scripts/web.sh --check
options=(-m web -n 2 --dist loadfile)
# As root on Debian the browser can be had, so nothing may be left out.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then options+=(--nothing-skipped); fi
.venv/bin/python -m pytest "${options[@]}" tests/web "$@"
