"""Findings of `lint` as SARIF 2.1.0, the format that code scanning reads."""

from collections.abc import Sequence
from urllib.parse import quote

from fairlead import __version__
from fairlead.client.json_object import Json
from fairlead.foresight.lint.material import LintFinding
from fairlead.foresight.lint.table import RULES

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(findings: Sequence[LintFinding]) -> Json:
    """One log with one run."""
    rules = [{"id": rule.id, "shortDescription": {"text": f"{rule.summary}."}} for rule in RULES]
    driver = {"name": "fairlead lint", "version": __version__, "rules": rules}
    results = [_result(finding) for finding in findings]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(finding: LintFinding) -> Json:
    names = [rule.id for rule in RULES]
    is_address = "://" in finding.file
    return {
        "ruleId": finding.rule,
        "ruleIndex": names.index(finding.rule),
        "level": finding.level,
        "message": {"text": f"{finding.message} {finding.counter_example}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": finding.file if is_address else quote(finding.file)},
                    # The readers do not keep lines, and code scanning shows no result without one.
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": f"{finding.subject}: {finding.path}"}],
            }
        ],
    }
