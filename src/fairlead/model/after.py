"""The workloads that must have ended before another starts: the annotation that names them. Pure."""

import re
from typing import NamedTuple

#: The annotation that names the workloads which must have ended, as `prep,any:fetch`.
ANNOTATION = "fairlead/after"
_ANY = "any:"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_MAX_DEPENDENCIES = 100


class Dependency(NamedTuple):
    name: str
    #: Whether any end will do, and not only completion.
    is_any: bool


def read_after(text: str) -> tuple[Dependency, ...]:
    """The dependencies of an annotation; raises ValueError if it is not a list of names."""
    dependencies: dict[Dependency, None] = {}
    for part in text.split(","):
        name = part.strip().removeprefix(_ANY)
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{part.strip()}' must be the name of a workload, or {_ANY} and a name")
        dependencies[Dependency(name, part.strip().startswith(_ANY))] = None
    if len(dependencies) > _MAX_DEPENDENCIES:
        raise ValueError(f"a workload waits for at most {_MAX_DEPENDENCIES} others")
    return tuple(dependencies)
