#!/bin/sh
# Submit a training, wait for its end, read what it printed. Needs a server: `fairlead server start`.
set -eu
name=$(fairlead training submit --name-prefix hello --image fairlead.local/host --command -- \
    sh -c 'echo "hello from $RUNAI_JOB_NAME in project $RUNAI_PROJECT"')
fairlead wait "$name" --for Completed --timeout 1m
fairlead training logs "$name"
