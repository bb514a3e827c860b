"""Messages about workloads of other projects: stored both with and without their names.

A record's `message` names only what every reader of the record may see. Beside it, the record may keep the same message
with the names. So code that forgets to choose the message for its reader reveals no name.
"""

import msgspec

#: What a message says instead of the name of a workload that a reader of the record may not see.
OTHER_WORKLOAD = "a workload of another project"
#: The projects whose workloads a reader may see; None for all.
VisibleProjects = frozenset[str] | None


class NamedMessage(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A message with names, for readers who may see the workloads of the project that it names."""

    text: str
    #: Empty if that project is not known: then only for readers who may see all projects.
    project_id: str = ""


def may_name(project_id: str, visible: VisibleProjects) -> bool:
    return visible is None or project_id in visible


def choose_message(message: str, named: NamedMessage | None, visible: VisibleProjects) -> str:
    """The message as a reader may see it."""
    return named.text if named is not None and may_name(named.project_id, visible) else message
