"""From one dialect to another: which dialect a text is in, who reads it, and who writes the one that is wanted.

Called by the command `convert`. It loads only the modules of the two dialects at hand, by a function that is passed in
and has them under their own names. Command lines are read by the command line itself, Kubernetes objects are rendered
by their engine. Nothing disappears silently: every member that is not carried is listed.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.formats.intermediate import FLAGS, REST, SBATCH, YAML, ConversionResult, IntermediateWorkload
from fairlead.formats.yaml.keywords import API_VERSION
from fairlead.kinds.kind import Kind

#: Gives a module of this folder by its name.
Load = Callable[[str], Any]
_WRITERS = {REST: "convert_to_rest", YAML: "convert_to_yaml", FLAGS: "convert_to_flags"}


def detect(load: Load, text: str, file: str = "") -> str:
    """The dialect of a text, by its first signs; `file` is what it is called where it has none."""
    if "#SBATCH" in text[:100_000]:
        return SBATCH
    if _is_ours(text):
        return YAML
    request = _read_object(text)
    if request is not None and "apiVersion" not in request and ("spec" in request or "projectId" in request):
        return REST
    found: str = load("convert_detect").detect(text, file)
    return found


def _is_ours(text: str) -> bool:
    """Whether its first line of content is the version of workload YAML; then the text is read once only."""
    for line in text[:10_000].splitlines():
        if line.strip() not in ("", "---") and not line.startswith("#"):
            return line.startswith(f"apiVersion: {API_VERSION}")
    return False


def read_any(
    load: Load, text: str, dialect: str, kind: Kind | None = None, file: str = ""
) -> list[IntermediateWorkload]:
    """The workloads of a text. `kind` is what dialects that name none are taken for."""
    if dialect == YAML:
        documents: list[IntermediateWorkload] = load("convert_from_yaml").read_files([(file, text)])[0]
        return documents
    request = _read_object(text) if dialect == REST else None
    if request is not None:
        return [load("convert_from_rest").read_request(request, kind, file)]
    found: list[IntermediateWorkload] = load("convert_from_texts").read(text, dialect, kind, file)
    return found


def _read_object(text: str) -> dict[str, Any] | None:
    """The object that a text of JSON holds: read as JSON, texts stay texts. None for any other text."""
    if text.lstrip()[:1] != "{":
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def render(load: Load, workload: IntermediateWorkload, dialect: str) -> ConversionResult:
    """The workload in another dialect; losses of the way in come first."""
    rendered: ConversionResult = load(_WRITERS[dialect]).render(workload)
    return rendered
