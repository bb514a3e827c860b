"""Which dialect a text of YAML is in, by the members of its first document. Called by `convert`."""

from fairlead.formats.intermediate import DSTACK, JOB, REST, SKYPILOT, YAML, Unconvertible, lines_of
from fairlead.formats.yaml.tree import read_tree

_NO_DIALECT = "The text is no workload in a dialect that is known; name it with --from."


def detect(text: str, file: str = "") -> str:
    """The dialect of a text of YAML, by its first document."""
    documents, issues = read_tree(text, file)
    if not documents:
        raise Unconvertible([str(issue) for issue in issues] or lines_of(file, ["The text is empty."]))
    content = documents[0].content
    if not isinstance(content, dict):
        raise Unconvertible(lines_of(file, [_NO_DIALECT]))
    version = content["apiVersion"].content if "apiVersion" in content else ""
    if version:
        return JOB if version == "batch/v1" else YAML
    if "type" in content and "spec" not in content:
        return DSTACK
    if "spec" in content or "projectId" in content:
        return REST
    if {"run", "setup", "resources"} & set(content):
        return SKYPILOT
    raise Unconvertible(lines_of(file, [_NO_DIALECT]))
