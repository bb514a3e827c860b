import pytest

from fairlead.model.spec.names import name_violations


@pytest.mark.parametrize(
    ("name", "as_prefix", "want_wrong"),
    [
        pytest.param("a", False, 0, id="one letter"),
        pytest.param("train-7", False, 0, id="letters, hyphen, digit"),
        pytest.param("a" * 63, False, 0, id="63 characters"),
        pytest.param("a" * 64, False, 1, id="64 characters"),
        pytest.param("a" * 57, True, 0, id="prefix that leaves room for its suffix"),
        pytest.param("a" * 58, True, 1, id="prefix one too long"),
        pytest.param("train-", True, 0, id="prefix may end with a hyphen"),
        pytest.param("train-", False, 1, id="name may not"),
        pytest.param("7train", False, 1, id="starts with a digit"),
        pytest.param("Train", False, 1, id="capital"),
        pytest.param("train_1", False, 1, id="underscore"),
        pytest.param("train\n", False, 1, id="line break at the end"),
        pytest.param("ä", False, 1, id="letter outside ASCII"),
        pytest.param("", False, 1, id="empty"),
        pytest.param("A" * 64, False, 2, id="both at once"),
    ],
)
def test_names(name: str, as_prefix: bool, want_wrong: int) -> None:
    assert len(name_violations(name, as_prefix)) == want_wrong
