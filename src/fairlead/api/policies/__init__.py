"""Routes of policies: write, read, delete, and what holds in a project.

Listed in `api/application.py`. Each route calls one use case of `control/policies`; the routes decide nothing.
"""
