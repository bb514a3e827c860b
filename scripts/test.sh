#!/usr/bin/env bash
# The test suite as CI runs it: on both cores, with everything that this machine can run. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system-packages.sh --if-possible
# What needs a Kubernetes control plane is `make test-kubernetes`, what needs Knative on it `make test-operators`, what needs
# Docker's engine `make test-docker`, and what needs nerdctl `make test-containerd`.
options=(--dist loadgroup -m "not kubernetes and not operators and not docker and not containerd")
# As root on Debian all that the tests need can be had, so nothing may be left out.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then options+=(--nothing-skipped); fi
run() { .venv/bin/python -m pytest "${options[@]}" "$@"; }
run -n 2 "$@" && exit
# Thousands of real processes on a busy machine: what failed has one more chance, with nothing beside it, and is named.
echo "once more, one at a time: what failed" >&2
run -n 1 --last-failed --last-failed-no-failures none "$@"
