#!/bin/sh
# Submits a training, waits until it has completed and prints its output. Needs a server: `fairlead server start`.
set -eu
name=$(fairlead training submit --name-prefix hello --image fairlead.local/host --command -- \
    sh -c 'echo "hello from $RUNAI_JOB_NAME in project $RUNAI_PROJECT"')
fairlead wait "$name" --for Completed --timeout 1m
fairlead training logs "$name"
