"""The Kubernetes engine: runs workloads as objects of a cluster, where KAI-Scheduler places the pods.

`engine.py` is the way in, made by `configuration.py`. It never decides where a pod runs.
"""
