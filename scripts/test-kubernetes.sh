#!/usr/bin/env bash
# The tests that need a real cluster, as root: two processes at once, each on a cluster of its own that is started for
# it and ended with it. Arguments go to pytest. A cluster that does not come up fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system-packages.sh
clusters=$PWD/.tools/test-clusters
cluster() { .venv/bin/python -m deploy.cluster "$@"; }
end() {
  for folder in "$clusters"/gw* "$clusters"; do
    [ ! -e "$folder/layout.json" ] || cluster --folder "$folder" down || echo "$folder is still there" >&2
  done
}
trap end EXIT
end
cluster build --with kubeflow,mpi,helm
failures=$PWD/.tools/failed-kubernetes-tests.json
# Whole files, in the order of tests/kubernetes/conftest.py.
options=(-p tests.flaky -p tests.workers --dist loadfile --no-loadscope-reorder -m "kubernetes and not operators" --nothing-skipped)
run() { FAIRLEAD_CLUSTER=$clusters .venv/bin/python -m pytest "${options[@]}" "$@"; }
code=0
run -n 2 --first-run "$failures" "$@" || code=$?
# 1: tests failed. Everything else is no question of tests.
[ "$code" = 1 ] || exit "$code"
# Once, on a new cluster, and only to tell flaky tests from broken ones (tests/flaky.py).
echo "once more, one at a time: what failed" >&2
end
run -n 1 --second-run "$failures" "$@"
