"""A short run of the fuzzer that `make soak` runs for minutes; and that it finds what it looks for."""

from tests.properties import fuzz_yaml
from tests.properties.fuzz_yaml import Fuzz, run_pieces


def test_broken_documents_are_read_or_refused_with_a_message() -> None:
    report = Fuzz(seed=1).run(0, 400)
    assert report.problems == []
    assert report.texts == 400


def test_a_run_in_a_process_of_its_own_reports_itself() -> None:
    report = run_pieces(seed=2, seconds=1)
    assert report.problems == []
    assert report.texts >= 200
    assert 0 < report.megabytes < fuzz_yaml.MEGABYTES_MOST
    assert str(report).startswith("workload YAML, seed 2:")


def test_the_same_seed_makes_the_same_texts() -> None:
    assert [Fuzz(3).text(number) for number in range(20)] == [Fuzz(3).text(number) for number in range(20)]
    assert Fuzz(3).text(0) != Fuzz(4).text(0)
