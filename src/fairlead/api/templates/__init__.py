"""Routes of templates, of workloads in other dialects, and of conversions.

Listed in `api/application.py`. They call the use cases in `control/workloads` and the dialects in `formats`.
"""
