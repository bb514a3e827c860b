"""What is said of errors that have no words of their own."""

import pytest

from fairlead.engines.kubernetes.client.api import ApiError, error_message


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (TimeoutError(), "no answer in time"),
        (ConnectionResetError(), "ConnectionResetError"),
        (OSError("no route"), "no route"),
        (ApiError(500, "", "etcd is gone"), "etcd is gone"),
    ],
    ids=["silence", "an error without words", "an error with words", "the server's own"],
)
def test_why_a_watch_is_taken_up_again(error: Exception, want: str) -> None:
    assert want in error_message(error)
