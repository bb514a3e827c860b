"""The Python SDK of Fairlead. Start with `Client`, or with `AsyncClient` of `fairlead.client.aio`.

The rest is what they take and raise. Names are loaded when they are used, because every command imports this package
and many commands need no server. `__init__.pyi` tells type checkers where the names are.
"""

import importlib

#: Public names, and the modules that have them.
_PUBLIC = {
    "Client": "client",
    "KindClient": "kind_client",
    "Trust": "access.urls",
    **dict.fromkeys(("Job", "Jobs"), "jobs"),
    **dict.fromkeys(("Credentials", "TokenFile", "application", "password"), "access.tokens"),
    **dict.fromkeys(
        (
            "ClientError",
            "Issue",
            "JobFailed",
            "NameNotFound",
            "NotLoggedIn",
            "ServerError",
            "TimedOut",
            "Unreachable",
        ),
        "errors",
    ),
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> object:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'fairlead.client' has no attribute '{name}'")
    return getattr(importlib.import_module(f"fairlead.client.{module}"), name)
