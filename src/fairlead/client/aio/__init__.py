"""The client for `asyncio`, and the source of the blocking client.

`make format` writes each module here as a module of `fairlead.client` without `async` and `await`. Only `channel.py` is
written for both.
"""

from fairlead.client.aio.client import AsyncClient
from fairlead.client.aio.jobs import AsyncJob, AsyncJobs

__all__ = ["AsyncClient", "AsyncJob", "AsyncJobs"]
