#!/usr/bin/env bash
# Makes the checkout ready: .tools/uv and .venv, all of it from uv.lock. Called by the Makefile when they are not there
# or older than the lock file; writes nothing outside the checkout but the caches of pip and uv. With --run it installs
# only what the server and the commands need, with --web what builds the page, and removes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
groups=()
[ "${1:-}" != --run ] || groups=(--no-default-groups)
[ "${1:-}" != --web ] || groups=(--no-default-groups --group web)

find_python() {
  local name
  # The system's own first: distributions build it with profile-guided optimization, pyenv by default does not, and the
  # same server takes 3,200 submissions a second on the one and 1,700 on the other.
  for name in ${PYTHON:-} /usr/bin/python3 python3 python3.11 python3.12 python3.13 python3.14 python; do
    if command -v "$name" >/dev/null &&
      "$name" -c 'import ctypes, sqlite3, ssl, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      # The interpreter itself, not a shim in front of it.
      "$name" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  echo "Fairlead needs Python 3.11 or newer, and none of python3, python3.11 … is that." >&2
  echo "Install it (Debian 12: apt-get install python3), or say where it is: make PYTHON=/path/to/python3" >&2
  return 1
}

python=$(find_python)
# The hook would first fetch what only a wheel needs; the Makefile makes the tables itself.
export HATCH_BUILD_NO_HOOKS=true
# uv reads its own variables only; take over what pip was told about this machine.
export UV_PYTHON=$python UV_PYTHON_DOWNLOADS=never
[ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$PIP_CERT}
[ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}

# The pinned uv, unless that very version is there already.
wanted=$("$python" -c 'import tomllib; print(next(p["version"] for p in tomllib.load(open("uv.lock", "rb"))["package"] if p["name"] == "uv"))')
if [ "$(.tools/uv --version 2>/dev/null | cut -d' ' -f2)" != "$wanted" ]; then
  echo "fetching uv $wanted into .tools" >&2
  "$python" scripts/install_uv.py uv.lock .tools/uv
fi

install_through_index() {
  # The lock file's addresses cannot be reached: the same versions and hashes from the index this machine has.
  echo "the addresses in uv.lock cannot be reached; trying this machine's package index" >&2
  .tools/uv export --frozen --quiet --no-emit-project "${groups[@]}" --output-file .tools/requirements.txt
  [ -x .venv/bin/python ] || .tools/uv venv --quiet .venv
  .tools/uv pip install --quiet --python .venv/bin/python --require-hashes -r .tools/requirements.txt
  .tools/uv pip install --quiet --python .venv/bin/python --no-deps --editable .
}

echo "installing the packages of uv.lock into .venv" >&2
.tools/uv sync --frozen --quiet "${groups[@]}" ${groups:+--inexact} || install_through_index
# Bytecode of what the server and the commands load, so that the first call is as fast as the next, also where Python is
# told to write none.
.venv/bin/python -m compileall -q src || true
env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -c 'import fairlead.app' || true
