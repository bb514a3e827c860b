"""Valid names of workloads: DNS labels that start with a letter. Pods and hosts get names made from them."""

import re

from fairlead.model.spec.rules import Violation

LONGEST_NAME = 63
#: The number of characters that follow a name given as a prefix, after a hyphen.
SUFFIX_LENGTH = 5
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
_PREFIX = re.compile(r"[a-z][a-z0-9-]*\Z")


def name_violations(name: str, as_prefix: bool, path: str = "name") -> list[Violation]:
    """Every reason why a workload cannot have this name."""
    broken = []
    if as_prefix:
        longest, shape = LONGEST_NAME - SUFFIX_LENGTH - 1, _PREFIX
        ending = "lower-case letters, digits and hyphens are allowed; start with a letter"
    else:
        longest, shape = LONGEST_NAME, _LABEL
        ending = "lower-case letters, digits and hyphens are allowed; start with a letter, do not end with a hyphen"
    if not name:
        return [Violation(path, "is empty; it must be given")]
    if len(name) > longest:
        suffix = f" together with the hyphen and {SUFFIX_LENGTH} characters that follow a prefix" if as_prefix else ""
        broken.append(
            Violation(path, f"has {len(name)} characters; at most {longest} are allowed, to fit {LONGEST_NAME}{suffix}")
        )
    if not shape.match(name):
        broken.append(Violation(path, f"is '{name[:80]}'; {ending}"))
    return broken
