"""Sessions over WebSocket: who may open one, from which page, and what a refusal says."""

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_browser_sessions import cookie_of, sign_in

NOBODY = "/api/v1/workloads/99999999-9999-4999-8999-999999999999/exec?command=true"


def open_socket(api: ApiServer, path: str, *protocols: str, **headers: str) -> str:
    """Open it, and say why it was closed."""
    offered = [Subprotocol(one) for one in protocols] or None
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with connect(f"ws://127.0.0.1:{api.port}{path}", subprotocols=offered, additional_headers=named) as socket:
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=120)
        return f"{socket.close_code} {socket.close_reason}"


def start_session(api: ApiServer) -> tuple[str, str]:
    """The cookie of a browser's session, and the token for its writes."""
    answer = sign_in(api)
    return cookie_of(answer)["Cookie"], answer.json["csrfToken"]


def test_a_session_without_its_token_is_refused(api: ApiServer) -> None:
    cookie, token = start_session(api)
    assert open_socket(api, NOBODY, "fairlead", Cookie=cookie).startswith("4401 The request has a session, but not")
    assert open_socket(api, NOBODY, "fairlead", "csrf.wrong", Cookie=cookie).startswith("4401")
    assert open_socket(api, NOBODY, "fairlead", f"csrf.{token}", Cookie=cookie).startswith("4404")


def test_a_page_of_another_origin_is_refused(api: ApiServer) -> None:
    cookie, token = start_session(api)
    with pytest.raises(InvalidStatus, match="403"):
        open_socket(api, NOBODY, "fairlead", f"csrf.{token}", Cookie=cookie, Origin="http://evil.localhost")
    origin = f"http://127.0.0.1:{api.port}"
    assert open_socket(api, NOBODY, "fairlead", f"csrf.{token}", Cookie=cookie, Origin=origin).startswith("4404")


def test_no_access_without_a_token(api: ApiServer) -> None:
    assert open_socket(api, NOBODY, "fairlead").startswith("4401")


@pytest.mark.parametrize("path", ["/api/v1/workloads/trainings", "/api/v1/nothing", "/ui/"])
def test_only_sessions_have_a_websocket(api: ApiServer, path: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        open_socket(api, path, "fairlead")
