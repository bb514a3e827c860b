"""What a workload may be called: a DNS label that starts with a letter, from which pods and hosts are named."""

import re

from fairlead.model.spec.rules import Violation

LONGEST_NAME = 63
#: What is added to a name that was given as a prefix: a hyphen and so many characters.
SUFFIX_LENGTH = 5
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
_PREFIX = re.compile(r"[a-z][a-z0-9-]*\Z")


def name_violations(name: str, as_prefix: bool, path: str = "name") -> list[Violation]:
    """Every reason why a workload cannot be called so."""
    found = []
    if as_prefix:
        longest, shape = LONGEST_NAME - SUFFIX_LENGTH - 1, _PREFIX
        ending = "lower-case letters, digits and hyphens are allowed, and it starts with a letter"
    else:
        longest, shape = LONGEST_NAME, _LABEL
        ending = "lower-case letters, digits and hyphens are allowed; it starts with a letter, ends with no hyphen"
    if not name:
        return [Violation(path, "is empty; it must be given")]
    if len(name) > longest:
        room = f" with the {SUFFIX_LENGTH} characters and the hyphen that follow a prefix" if as_prefix else ""
        found.append(
            Violation(path, f"has {len(name)} characters; at most {longest} are allowed, to fit {LONGEST_NAME}{room}")
        )
    if not shape.match(name):
        found.append(Violation(path, f"is '{name[:80]}'; {ending}"))
    return found
