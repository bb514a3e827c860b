#!/usr/bin/env bash
# The tests with Knative Serving itself, of the Helm chart with all its parts, with MPI that starts slowly, and others that
# take long on a cluster, as root: the programs are built once from their Go modules (some minutes), on a cluster that is
# started for them and ended with them. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system-packages.sh
folder=$PWD/.tools/test-operators
cluster() { .venv/bin/python -m deploy.cluster --folder "$folder" "$@"; }
trap 'cluster down' EXIT
# All that the tests use: what a test builds counts as its own time.
cluster build --with helm,mpi,knative,dex,loki,lws-newest
cluster up
slow=(tests/kubernetes tests/e2e/test_kubernetes_helm_life.py)
command -v java >/dev/null || {
  echo "Java is missing here, so sign-on with Keycloak is not tested" >&2
  slow+=(--ignore tests/kubernetes/test_sign_on_keycloak.py)
}
FAIRLEAD_CLUSTER=$folder .venv/bin/python -m pytest -m operators --nothing-skipped "${slow[@]}" "$@"
