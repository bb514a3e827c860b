#!/bin/sh
# JupyterLab as a workspace, in an environment of its own ($JUPYTER_ENVIRONMENT, by default beside this file; made on
# the first call, from PyPI). Prints the link that opens it. Who may open it is checked before it: it asks for nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
environment=${JUPYTER_ENVIRONMENT:-$here/.venv}
if [ ! -x "$environment/bin/jupyter-lab" ]; then
    if command -v uv >/dev/null; then
        uv venv --quiet "$environment"
        uv pip install --quiet --python "$environment/bin/python" jupyterlab
    else
        python3 -m venv "$environment"
        "$environment/bin/pip" install --quiet jupyterlab
    fi
fi
name=$(fairlead workspace submit --name-prefix lab --image fairlead.local/host \
    --external-url container=8888,tool-type=jupyter-notebook,tool-name=JupyterLab \
    --readiness-probe-port 8888 --readiness-probe-path /api \
    --command -- "$environment/bin/jupyter-lab" --no-browser --allow-root --ip=0.0.0.0 --port=8888 \
    --IdentityProvider.token= --ServerApp.allow_remote_access=True)
fairlead wait "$name" --for Running --timeout 5m
fairlead url "$name"
