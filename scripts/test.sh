#!/usr/bin/env bash
# The test suite as CI runs it: on all cores, with everything that this machine can run. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system-packages.sh --if-possible
# What needs a Kubernetes control plane is `make test-kubernetes`, what needs Knative on it `make test-operators`, what needs
# Docker's engine `make test-docker`, what needs nerdctl `make test-containerd`, and the web page `make test-web`.
# Unit tests come last: they are short, so both processes end at about the same time.
options=(-p tests.flaky -p tests.workers --dist loadgroup --no-loadscope-reorder -m "not kubernetes and not operators and not docker and not containerd and not web")
# As root on Debian all that the tests need can be had, so nothing may be left out.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then options+=(--nothing-skipped); fi
failures=$PWD/.tools/failed-tests.json
run() { .venv/bin/python -m pytest "${options[@]}" "$@"; }
code=0
# Two processes for each core: tests of servers and pods wait for more than half of their time.
run -n $((2 * $(nproc))) --first-run "$failures" "$@" || code=$?
# 1: tests failed. Everything else is no question of tests.
[ "$code" = 1 ] || exit "$code"
# Once, and only to tell flaky tests from broken ones (tests/flaky.py).
echo "once more, one at a time: what failed" >&2
run -n 1 --second-run "$failures" "$@"
