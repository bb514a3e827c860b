"""Workloads on a Kubernetes cluster with the KAI scheduler. So far: how they look there."""
