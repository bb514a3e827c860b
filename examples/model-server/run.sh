#!/bin/sh
# Two groups of a leader and two workers behind one URL. Asks for a text, scales to three groups and asks again.
# Needs a server that runs as root on this machine, so that each group has its own network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=$(fairlead inference distributed submit --name-prefix model --image fairlead.local/host \
    --replicas 2 --workers 2 --serving-port 8000 \
    --readiness-probe-port 8000 --readiness-probe-period 1 \
    --worker-as-leader=false --worker-image fairlead.local/host --worker-command "python3 $here/model.py" \
    --command -- python3 "$here/model.py")
fairlead wait "$name" --for Running --timeout 2m
url=$(fairlead url "$name" --plain)
python3 "$here/ask.py" "$url" "the wind" 8
fairlead inference distributed scale "$name" --replicas 3
python3 "$here/ask.py" "$url" "the ship" 8
fairlead inference distributed delete "$name"
