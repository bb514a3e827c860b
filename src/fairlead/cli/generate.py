"""Writes the tables that the command line and the SDK read instead of the model: kinds, and the flags of their specs.

`python -m fairlead.cli.generate` writes them, `--check` only tells whether they are as they would be written.
No command imports this.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fairlead import client
from fairlead.formats.flags import flag_table
from fairlead.formats.rest import beside_names
from fairlead.kinds import KINDS
from fairlead.kinds.kind import noun_of
from fairlead.model.fields import fields_of

_FLAGS = Path(__file__).parent / "generated"
_KINDS = Path(client.__file__).parent / "kinds.json"


def render_tables() -> dict[Path, str]:
    """Every generated file and what belongs into it."""
    kinds = [
        {
            "key": kind.key,
            "title": kind.title,
            "rest": kind.rest,
            "noun": noun_of(kind),
            "command": list(kind.command),
            "subtypes": [{"command": list(words), "sets": list(preset)} for words, preset in kind.subtypes],
            "canSuspend": kind.can_suspend,
            "canChange": [field.rest for field in fields_of(kind.changes)] if kind.changes else [],
            "beside": list(beside_names(kind)),
            "wordsIn": kind.words_in,
            "alike": [list(pair) for pair in kind.alike],
        }
        for kind in KINDS.values()
    ]
    tables = {_KINDS: _render(kinds)}
    for kind in KINDS.values():
        tables[_FLAGS / f"{kind.key}.json"] = _render(flag_table(kind))
    return tables


def _render(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the command line's tables from the model.")
    parser.add_argument("--check", action="store_true", help="only tell whether they are up to date")
    is_check = parser.parse_args().check
    stale = []
    for path, text in render_tables().items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if not is_check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in stale:
        sys.stderr.write(f"{path} {'is not up to date' if is_check else 'written'}\n")
    return 1 if stale and is_check else 0


if __name__ == "__main__":
    sys.exit(main())
