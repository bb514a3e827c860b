"""Fairlead: a workload orchestrator for AI clusters that runs whole on one machine.

`fairlead.Client()` is the Python client of the server. Its names are loaded when they are used, because every process
of the server and every command imports this module.
"""

import importlib

__version__ = "0.2.0.dev0"

#: Public names, and the modules that have them. `__init__.pyi` tells type checkers the same.
_PUBLIC = {
    **dict.fromkeys(("AsyncClient", "AsyncJob", "AsyncJobs"), "fairlead.client.aio"),
    **dict.fromkeys(
        (
            "Client",
            "ClientError",
            "Job",
            "JobFailed",
            "Jobs",
            "NameNotFound",
            "NotLoggedIn",
            "ServerError",
            "TimedOut",
            "Unreachable",
        ),
        "fairlead.client",
    ),
}


def __getattr__(name: str) -> object:
    if name == "specs":
        return importlib.import_module("fairlead.client.specs")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fairlead' has no attribute '{name}'")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return ["__version__", "specs", *_PUBLIC]
