"""Whatever text is given: it is read or refused in words, quickly; no exception escapes and nothing takes long."""

import time

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fairlead.formats.convert.dialects import detect, read_any, render
from fairlead.formats.intermediate import DIALECTS, Unconvertible
from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.fields import yaml_fields
from fairlead.kinds import KINDS

KIND = KINDS["training"]
QUICK = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
PIECES = (
    *(f"  {name}: " for name in yaml_fields(KIND)),
    *("{value: ", "{items: {a: {value: ", "}", "}}", "value:\n    ", "items:\n    a:\n      value:\n        "),
    *("x", "1", "-1", "1e999", "0.5", "true", "null", "~", "[", "]", "{", "}", ":", ",", "- ", "\n", "  ", "\t"),
    *(
        "&a ",
        "*a",
        "<<: *a",
        "'",
        '"',
        "|\n",
        ">\n",
        "---\n",
        "# c\n",
        "!!str ",
        "? ",
        "\0",
        "\ufeff",
        "ü",
        "SECRET:a,b",
    ),
    *("container: 80", "path: /x", "name: y", "operator: Exists", "key: k", "effect: NoExecute", "size: 1G"),
)
HEAD = "apiVersion: run.ai/v2alpha1\nkind: TrainingWorkload\nmetadata: {name: x, namespace: runai-a}\nspec:\n"
BODIES = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def assert_read_or_refused(text: str) -> None:
    began = time.process_time()
    manifests, issues = read_manifests(text, "f")
    for manifest in manifests:
        found, wrong = read_workload(manifest)
        assert (found is None) == bool(wrong)
        if found is not None and not issues:
            found.kind.podsets(found.spec)
    assert time.process_time() - began < 1


@given(BODIES)
@QUICK
def test_documents(body: str) -> None:
    assert_read_or_refused(HEAD + "  name: {value: x}\n  image: {value: i}\n" + body)


@given(st.one_of(st.text(max_size=200), BODIES))
@QUICK
def test_any_text(text: str) -> None:
    assert_read_or_refused(text)


@given(st.sampled_from(DIALECTS), st.one_of(st.text(max_size=100), BODIES, BODIES.map(lambda body: HEAD + body)))
@QUICK
def test_conversion_explains_refusals(dialect: str, text: str) -> None:
    for chosen in (None, dialect):
        try:
            workloads = read_any(text, chosen or detect(text))
        except Unconvertible:
            continue
        for workload in workloads:
            for target in ("rest", "yaml", "flags"):
                assert render(workload, target).text
