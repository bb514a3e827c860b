"""Buckets of an S3 service as folders: one program for every engine.

Run by the local engine in the pod's process, and on clusters in a container of the pod. It imports only the standard
library, because these files alone are copied into the container; their names are part of rendered pods.
"""
