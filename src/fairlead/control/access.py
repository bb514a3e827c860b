"""The one place that says who may do what where. Every use case asks it before it reads or changes anything.

Today whoever is authenticated may do everything; when roles come, they are decided here and no caller changes.
"""

from fairlead.model.errors import Unauthenticated
from fairlead.model.org import Caller

#: The scope of what belongs to no project: the whole installation.
EVERYWHERE = ""


def check(caller: Caller, operation: str, project_id: str = EVERYWHERE) -> None:
    """Return if `caller` may do `operation` (a resource and a verb: `workloads:read`) there; raise otherwise."""
    if not caller.name:
        raise Unauthenticated(
            f"{operation} in {project_id or 'this installation'} needs a caller; send an access token"
        )
