"""Routes of templates, and of workloads in other dialects."""
