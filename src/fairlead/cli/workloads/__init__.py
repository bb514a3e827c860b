"""Commands on workloads of every kind."""
