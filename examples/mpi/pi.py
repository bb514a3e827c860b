"""The number pi by MPI: every process adds up its part of the sum, and the first one tells the whole."""

import os

from mpi4py import MPI

world = MPI.COMM_WORLD
steps = 100_000
part = sum(4 / (1 + ((n + 0.5) / steps) ** 2) for n in range(world.rank, steps, world.size)) / steps
pi = world.reduce(part)
hosts = world.gather(os.uname().nodename)
if world.rank == 0:
    print(f"pi is {pi:.6f}, by {world.size} processes on {', '.join(sorted(set(hosts)))}", flush=True)
