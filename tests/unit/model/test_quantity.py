import pytest

from fairlead.model.quantity import BadQuantity, from_recommended, thousandths, thousandths_of, whole


@pytest.mark.parametrize(
    ("text", "want_whole", "want_thousandths"),
    [
        ("0", 0, 0),
        ("2", 2, 2000),
        ("+2", 2, 2000),
        ("20M", 20_000_000, 20_000_000_000),
        ("1Gi", 2**30, 1000 * 2**30),
        ("1.5Gi", 3 * 2**29, 1500 * 2**30),
        ("0.5G", 500_000_000, 500_000_000_000),
        ("500m", 1, 500),
        ("1e3", 1000, 1_000_000),
        ("1E3", 1000, 1_000_000),
        ("2E", 2 * 10**18, 2 * 10**21),
        ("1Ei", 2**60, 1000 * 2**60),
        ("1e-3", 1, 1),
        ("100u", 1, 1),
        ("1n", 1, 1),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("1K", 1000, 1_000_000),
        ("1k", 1000, 1_000_000),
        ("1Ki", 1024, 1_024_000),
    ],
)
def test_reads(text: str, want_whole: int, want_thousandths: int) -> None:
    assert (whole(text), thousandths(text)) == (want_whole, want_thousandths)


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 Gi", "Gi", "1GB", "1..2", "1.2.3", "-1", "1e", "1ee3", "0x10", "1e9999", "9Ei", "1Gi\n", "１", "NaN"],
)
def test_refuses(text: str) -> None:
    with pytest.raises(BadQuantity):
        whole(text)


@pytest.mark.parametrize(
    ("number", "want"), [(0, 0), (2, 2000), (0.1, 100), (0.3, 300), (0.0001, 1), (1.0005, 1001), (1e-9, 1)]
)
def test_numbers_in_thousandths(number: float, want: int) -> None:
    assert thousandths_of(number) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        *(("1GB", "1G"), ("10MIB", "10Mi"), ("1.5tb", "1.5T"), ("2 GiB", "2Gi"), ("3kB", "3k"), ("4KIB", "4Ki")),
        *(("1G", "1G"), ("B", "B"), ("1GBB", "1GBB"), ("", "")),
    ],
)
def test_recommended_sizes_are_quantities(text: str, want: str) -> None:
    assert from_recommended(text) == want
