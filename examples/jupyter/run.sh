#!/bin/sh
# Starts JupyterLab as a workspace and prints a link that opens it. The first call installs JupyterLab from PyPI into its
# own environment ($JUPYTER_ENVIRONMENT, by default next to this file). Fairlead's proxy checks who may open it, so
# JupyterLab itself asks for no password.
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
