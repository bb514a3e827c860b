#!/usr/bin/env bash
# All checks that need no running server. Every one runs, so that one call shows all there is to mend.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
check() {
  local name=$1
  shift
  printf '%-16s ' "$name"
  if output=$("$@" 2>&1); then echo ok; else
    echo FAILED
    printf '%s\n' "$output" | sed 's/^/    /'
    failed+=("$name")
  fi
}
python=.venv/bin/python
check format $python -m ruff format --check .
check lint $python -m ruff check .
check types $python -m mypy
check imports .venv/bin/lint-imports
check lock .tools/uv lock --check --offline
check "custom resources" $python scripts/generate_crds.py --check
check "chart" $python scripts/generate_chart.py --check
check "client" $python scripts/generate_sync_client.py --check
check spelling .venv/bin/codespell
check "docs and links" $python -m scripts.build_docs
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
