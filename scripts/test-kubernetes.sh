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
cluster build --with kubeflow,mpi
run() { FAIRLEAD_CLUSTER=$clusters .venv/bin/python -m pytest --dist loadfile -m kubernetes --nothing-skipped "$@"; }
run -n 2 "$@" && exit
# A cluster may miss a deadline on a machine that is too busy: what failed has two more chances, with nothing beside it.
again() {
  echo "once more, one at a time: what failed" >&2
  end
  run -n 1 --last-failed --last-failed-no-failures none "$@"
}
again "$@" || again "$@"
