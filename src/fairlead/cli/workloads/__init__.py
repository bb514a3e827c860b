"""Commands for workloads of every kind."""
