"""The page on snapshots holds the schema of the types as they are."""

import re
from pathlib import Path

import msgspec

from fairlead.scheduling import Snapshot

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "snapshot.md"


def schema() -> str:
    """To renew the page, put this between the last pair of fences."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Snapshot)), indent=1).decode()


def test_the_schema_on_the_page_is_current() -> None:
    blocks = re.findall(r"```json\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
    assert blocks[-1] == schema()
