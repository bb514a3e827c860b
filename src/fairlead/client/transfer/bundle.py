"""Everything that is carried over, as the source's REST interface shows it, and the file that holds it.

It has no passwords and no values of secrets: no interface shows those.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairlead.client.errors import ClientError
from fairlead.client.json_object import Json
from fairlead.client.transfer.report import ReportLine

FORMAT = "fairlead-export/1"


class Bundle(NamedTuple):
    """Lists of objects as REST answers them."""

    #: Address and version of the source.
    source: Json
    clusters: list[Json]
    node_pools: list[Json]
    departments: list[Json]
    projects: list[Json]
    users: list[Json]
    service_accounts: list[Json]
    access_rules: list[Json]
    #: Each with `path`, below which it was read.
    assets: list[Json]
    config_maps: list[Json]
    secrets: list[Json]
    claims: list[Json]
    templates: list[Json]
    #: Each with `rest`, its kind's name in paths.
    policies: list[Json]
    #: Creation requests, each with `rest`, `id` and `projectName`.
    workloads: list[Json]
    #: What could not be read, or is never carried over.
    unread: list[list[str]]
    #: Custom roles with their permission sets.
    roles: Sequence[Json] = ()

    def lines(self) -> list[ReportLine]:
        return [ReportLine(*(str(part) for part in row)) for row in self.unread]


def render_bundle(bundle: Bundle) -> str:
    return json.dumps({"format": FORMAT, **bundle._asdict()}, indent=1, ensure_ascii=False)


def load(text: str, path: str) -> Bundle:
    """The bundle in a file's text; raises ClientError if it is something else."""
    try:
        content: Any = json.loads(text)
    except ValueError as error:
        raise ClientError(f"{path} is not an export of Fairlead: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ClientError(f"{path} is not an export of Fairlead: its format is not {FORMAT}.")
    missing = [name for name in Bundle._fields if name not in content and name not in Bundle._field_defaults]
    if missing:
        raise ClientError(f"{path} is incomplete: it has no {', '.join(missing)}.")
    return Bundle(**{name: content[name] for name in Bundle._fields if name in content})
