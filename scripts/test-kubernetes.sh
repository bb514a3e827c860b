#!/usr/bin/env bash
# The tests that need a real cluster, on one that is started for them and ended with them. Arguments go to pytest.
# A cluster that does not come up fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system-packages.sh
folder=$PWD/.tools/test-cluster
cluster() { .venv/bin/python -m deploy.cluster --folder "$folder" "$@"; }
trap 'cluster down' EXIT
cluster up
FAIRLEAD_CLUSTER=$folder .venv/bin/python -m pytest -m kubernetes --nothing-skipped "$@"
