#!/bin/sh
# mpirun in a launcher starts two processes on each of two workers, without keys or SSH. The host file is provided.
# Needs Open MPI and mpi4py for /usr/bin/python3 (Debian: openmpi-bin, python3-mpi4py).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=$(fairlead training mpi submit --name-prefix pi --image fairlead.local/host --workers 2 --slots-per-worker 2 \
    --command -- mpirun -n 4 /usr/bin/python3 "$here/pi.py")
fairlead wait "$name" --for Completed --timeout 3m
fairlead training mpi logs "$name" --pod "$name-launcher-0"
