"""The package as its next version may be: the same code, with a newer layout of the database."""

import shutil
from pathlib import Path

_PACKAGE = Path(__file__).parents[2] / "src" / "fairlead"
#: What the next version adds: a column of workloads, which this version does not write.
_MIGRATION = """
MIGRATIONS = (*MIGRATIONS, Migration(MIGRATIONS[-1].number + 1, (AddColumns(table="workloads", columns="later:text"),)))
"""
_COLUMN = '        _text("later", attrgetter("name")),\n'


def write_next_version(folder: Path) -> Path:
    """The copied package, which is named `fairlead` as well."""
    package = folder / "fairlead"
    shutil.copytree(_PACKAGE, package)
    with open(package / "store" / "migrations.py", "a", encoding="utf-8") as file:
        file.write(_MIGRATION)
    declared = package / "store" / "collections.py"
    before, mark, after = declared.read_text().partition('        _text("cluster_id"),\n')
    declared.write_text(before + mark + _COLUMN + after)
    return package
