"""Buckets of an S3 service as folders: one program for every engine. It imports nothing but the standard library."""
