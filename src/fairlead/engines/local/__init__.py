"""The local engine: runs pods as real processes of this machine.

`engine.py` is the way in, made by `configuration.py`. Every module that a supervisor loads is memory in each pod, so
the `__init__.py` files below this folder import nothing.
"""
