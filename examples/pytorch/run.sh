#!/bin/sh
# PyTorch with a master and two workers as one gang. Needs torch for /usr/bin/python3 (Debian: python3-torch).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=$(fairlead training pytorch submit --name-prefix allreduce --image fairlead.local/host --workers 2 \
    --command -- /usr/bin/python3 "$here/allreduce.py")
fairlead wait "$name" --for Completed --timeout 3m
for pod in master-0 worker-0 worker-1; do
    fairlead training pytorch logs "$name" --pod "$name-$pod" --follow
done
