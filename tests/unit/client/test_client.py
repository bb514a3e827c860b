"""Addresses, queries and errors: what the SDK computes before and after the wire."""

import pytest

import fairlead.client
from fairlead.client import Client, ClientError, Issue, ServerError
from fairlead.client.access.urls import Address, QueryValue, read_address, render_query
from fairlead.client.errors import read_error


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("http://localhost:7420", Address("http", "localhost", 7420, "")),
        ("https://example.com/base/", Address("https", "example.com", 443, "/base")),
        ("example.com", Address("http", "example.com", 80, "")),
        ("http://[::1]:8080", Address("http", "::1", 8080, "")),
    ],
)
def test_read_address(url: str, want: Address) -> None:
    assert read_address(url) == want


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:y", "http://:80"])
def test_no_address(url: str) -> None:
    with pytest.raises(ClientError):
        read_address(url)


def test_authority() -> None:
    assert read_address("http://[::1]:8080").authority == "[::1]:8080"
    assert read_address("https://x").authority == "x"


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param({}, "", id="none"),
        pytest.param({"a": None, "b": []}, "", id="nothing given"),
        pytest.param({"limit": 5, "deleted": True}, "?limit=5&deleted=true", id="number and switch"),
        pytest.param({"filterBy": ["name==a,b", "phase!=x"]}, "?filterBy=name%3D%3Da%2Cb,phase%21%3Dx", id="list"),
        pytest.param({"search": "grün &"}, "?search=gr%C3%BCn%20%26", id="text"),
    ],
)
def test_render_query(query: dict[str, QueryValue], want: str) -> None:
    assert render_query(query) == want


def test_every_issue_is_read() -> None:
    error = read_error(
        400, {"code": 400, "message": "no", "complianceIssues": [{"field": "a", "details": "b", "rule": "min"}, 3]}
    )
    assert (error.status, error.message, error.issues) == (400, "no", (Issue("a", "b", "min"),))


def test_an_answer_of_another_shape_is_still_an_error() -> None:
    assert "502" in read_error(502, "<html>Bad gateway").message


def test_kinds_are_members() -> None:
    with Client("http://localhost") as client:
        assert client.trainings.entry.title == "Training"
        with pytest.raises(AttributeError):
            client.nonsense  # noqa: B018 - asking for it is what is tried


def test_the_public_names() -> None:
    assert fairlead.client.__all__ == [
        "Client",
        "ClientError",
        "Credentials",
        "Issue",
        "Job",
        "JobFailed",
        "Jobs",
        "KindClient",
        "NameNotFound",
        "NotLoggedIn",
        "ServerError",
        "TimedOut",
        "TokenFile",
        "Trust",
        "Unreachable",
        "application",
        "password",
    ]
    assert all(getattr(fairlead.client, name).__name__ == name for name in fairlead.client.__all__)


@pytest.mark.parametrize(
    ("issues", "details", "want"),
    [
        pytest.param((), "", "The name is taken (400).", id="a message"),
        pytest.param((), "it is used by x", "The name is taken (400):\n  it is used by x", id="details"),
        pytest.param((), "The name is taken", "The name is taken (400).", id="the same twice"),
        pytest.param(
            (Issue("a", "is bad", "min"), Issue("", "is worse")),
            "x",
            "The name is taken (400):\n  a: is bad [min]\n  is worse",
            id="violations",
        ),
    ],
)
def test_the_text_of_an_error_has_everything(issues: tuple[Issue, ...], details: str, want: str) -> None:
    assert str(ServerError(400, "The name is taken.", details, issues)) == want
