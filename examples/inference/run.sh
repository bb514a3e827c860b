#!/bin/sh
# A service that scales to zero: a request wakes it, and an update takes over without downtime.
# The update needs a server that runs as root on this machine, so that each version has its own network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=$(fairlead inference submit --name-prefix sentiment --image fairlead.local/host --serving-port 8000 \
    --min-replicas 0 --max-replicas 1 --initial-replicas 0 --command -- python3 "$here/sentiment.py")
fairlead wait "$name" --for Running --timeout 2m
url=$(fairlead url "$name" --plain)
# No pod runs yet. The request waits for one and is answered.
python3 "$here/ask.py" "$url" "a great ship and a fine wind"
python3 "$here/ask.py" "$url" "we were seasick"
fairlead inference update "$name" -e MODEL_VERSION=2
# Version 1 answers until version 2 is ready.
until [ "$(python3 "$here/ask.py" "$url" "we were seasick")" = sad ]; do sleep 0.1; done
python3 "$here/ask.py" "$url" "we were seasick"
fairlead inference delete "$name"
