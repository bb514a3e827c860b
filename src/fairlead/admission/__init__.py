"""What a submission must satisfy before it becomes a workload: rules, then policy."""
