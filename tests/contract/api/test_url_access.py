"""What ingress controllers are told of requests to workloads' URLs, for every way in which they describe one."""

from typing import Any

import pytest

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.model.pods.podset import PodContainer
from tests.builders import container_fields, podset, workload
from tests.contract.api.api_server import Answer, ApiServer

ADA = "ada@example.com"
OPEN, MINE, HERS = "open-team.localhost", "mine-team.localhost", "hers-team.localhost"
ONE, TWO = "tools.localhost/team/one", "tools.localhost/team/two"
URLS: dict[str, dict[str, Any]] = {
    "open": {"authorizationType": "public"},
    "mine": {},
    "hers": {"authorizationType": "authorizedUsers", "authorizedUsers": [ADA]},
    "one": {"url": f"https://{ONE}"},
    "two": {"url": f"https://{TWO}", "authorizationType": "authorizedUsers", "authorizedUsers": [ADA]},
}


@pytest.fixture(scope="module", autouse=True)
def urls(api: ApiServer) -> None:
    async def claim() -> None:
        for name, url in URLS.items():
            fields = {"exposedUrls": [{"container": 8080, **url}]}
            made = podset(container=PodContainer(image="x", fields=container_fields(fields)))
            entry = WorkloadEntry(workload=workload(name, id=name, project_name="team"), podsets=(made,))
            _, refused = api.context.url_registry.claim(entry)
            assert not refused

    api.do(claim())


@pytest.fixture(scope="module")
def ada(api: ApiServer) -> str:
    made = api.call("POST", "/api/v1/users", {"email": ADA})
    grant = {"grantType": "password", "username": ADA, "password": made.json["tempPassword"]}
    return str(api.call("POST", "/api/v1/token", grant).json["accessToken"])


def nginx(address: str, method: str = "GET") -> dict[str, str]:
    return {"X-Original-URL": f"http://{address}", "X-Original-Method": method}


def traefik(address: str, method: str = "GET") -> dict[str, str]:
    host, slash, path = address.partition("/")
    return {"X-Forwarded-Host": host, "X-Forwarded-Uri": slash + path, "X-Forwarded-Method": method}


def ask(api: ApiServer, headers: dict[str, str], token: str = "", url: str = "") -> Answer:
    answer = api.call("GET", f"/url-access?url={url}" if url else "/url-access", None, headers, token)
    assert answer.status != 200 or (answer.body, answer.headers["cache-control"]) == (b"", "no-store")
    return answer


DESCRIBED = pytest.mark.parametrize("describe", [nginx, traefik])


@DESCRIBED
@pytest.mark.parametrize(
    ("address", "who", "want"),
    [
        (f"{OPEN}/", "nobody", 200),
        (f"{MINE}/a/b?c=d", "nobody", 401),
        (f"{MINE}:8443/a", "anybody", 200),
        (f"{MINE}/a", "a forger", 401),
        (f"{HERS}/", "nobody", 401),
        (f"{HERS}/", "anybody", 403),
        (f"{HERS}/", "ada", 200),
        (f"{ONE}/x", "anybody", 200),
        (f"{TWO}/x", "anybody", 403),
        ("tools.localhost/", "anybody", 404),
        ("elsewhere.localhost/", "anybody", 404),
    ],
)
def test_who_may_pass(api: ApiServer, ada: str, describe: Any, address: str, who: str, want: int) -> None:
    tokens = {"nobody": "", "anybody": api.token, "ada": ada, "a forger": f"{api.token[:-4]}AAAA"}
    answer = ask(api, describe(address), tokens[who])
    assert answer.status == want, answer
    words = {401: "Sign in to open this URL", 403: "may not open this URL", 404: "No workload has a URL at"}
    assert want == 200 or words[want] in answer.json["details"]
    assert (answer.headers.get("www-authenticate") == "Bearer") == (want == 401)


@DESCRIBED
def test_nothing_of_ours_is_left_for_the_workload(api: ApiServer, describe: Any) -> None:
    cookies = "a=1; fairlead-url=x; fairlead-session=y; b=2"
    sent = {**describe(f"{MINE}/"), "Cookie": cookies, "X-Forwarded-User": "root"}
    seen = ask(api, sent, api.token)
    assert seen.headers["cookie"] == "a=1; b=2"
    assert seen.headers["x-forwarded-user"] == api.credentials.client_id
    assert "authorization" not in seen.headers
    assert "x-forwarded-prefix" not in seen.headers
    kept = ask(api, {**describe(f"{OPEN}/"), "Authorization": "token jupyter", "X-Forwarded-User": "root"})
    assert kept.headers["authorization"] == "token jupyter"
    assert "x-forwarded-user" not in kept.headers
    assert ask(api, describe(f"{ONE}/x"), api.token).headers["x-forwarded-prefix"] == "/team/one"


@DESCRIBED
@pytest.mark.parametrize(
    ("method", "origin", "more", "want"),
    [
        ("POST", f"http://{MINE}", {}, 200),
        ("POST", "http://evil.localhost", {}, 403),
        ("GET", "http://evil.localhost", {}, 200),
        ("GET", "http://evil.localhost", {"Sec-WebSocket-Key": "x"}, 403),
        ("GET", f"http://{MINE}", {"Sec-WebSocket-Key": "x"}, 200),
    ],
    ids=["own page", "another page", "only looking", "another page's socket", "own socket"],
)
def test_pages_of_others_cannot_act_for_their_viewers(
    api: ApiServer, describe: Any, method: str, origin: str, more: dict[str, str], want: int
) -> None:
    cookie = {"Cookie": f"fairlead-url={cookie_for(api, MINE)}"}
    assert ask(api, {**describe(f"{MINE}/", method), "Origin": origin, **cookie, **more}).status == want


def test_without_a_method_it_may_be_any(api: ApiServer) -> None:
    sent = {"X-Original-URL": f"http://{MINE}/", "Cookie": f"fairlead-url={cookie_for(api, MINE)}"}
    assert ask(api, sent).status == 200
    assert ask(api, {**sent, "Origin": "http://evil.localhost"}).status == 403


def test_a_cookie_is_good_for_its_url_alone(api: ApiServer) -> None:
    cookie = {"Cookie": f"fairlead-url={cookie_for(api, MINE)}"}
    assert ask(api, {**nginx(f"{MINE}/"), **cookie}).status == 200
    assert ask(api, {**nginx(f"{ONE}/"), **cookie}).status == 401


def cookie_for(api: ApiServer, url: str) -> str:
    """As a one-time link leaves it; that it does is seen with a whole server."""

    async def sign() -> str:
        name = api.credentials.client_id
        account = next(user for user in api.context.directory.users.values() if user.name == name)
        return api.authenticator.sign_for(account.id, f"url {url}", 600)

    return api.do(sign())


@DESCRIBED
@pytest.mark.parametrize(
    ("address", "url", "want"),
    [
        (f"{ONE}/../two/x", ONE, 200),
        (f"{ONE}/../two/x", TWO, 403),
        (f"{ONE}/x", TWO, 403),
        (f"{MINE}/", ONE, 403),
        (f"{ONE}/x", "tools.localhost/team", 404),
        (f"{MINE}/", "elsewhere.localhost", 404),
    ],
    ids=["the URL's own", "another's", "another's, plainly", "another host", "nobody's path", "nobody's host"],
)
def test_an_ingress_says_for_which_url_it_asks(
    api: ApiServer, describe: Any, address: str, url: str, want: int
) -> None:
    """Whatever the path looks like: the controller may read it in another way than we do."""
    assert ask(api, describe(address), api.token, url).status == want


@DESCRIBED
@pytest.mark.parametrize(
    "path", ["/team/one/../two/x", "/team/one/%2e%2e/two/x", "/team/one/..%2ftwo", "/team//two", "/team/one/..\\two"]
)
def test_without_that_a_path_that_leads_to_two_urls_is_refused(
    api: ApiServer, ada: str, describe: Any, path: str
) -> None:
    assert ask(api, describe(f"tools.localhost{path}"), ada).status in (403, 404)


def test_both_ways_may_say_the_same(api: ApiServer) -> None:
    assert ask(api, {**nginx(f"{OPEN}/a"), **traefik(f"{OPEN}/a")}).status == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {**nginx(f"{OPEN}/"), **traefik(f"{MINE}/")}, {**nginx(f"{OPEN}/"), **traefik(f"{OPEN}/", "POST")}],
    ids=["not said", "two URLs", "two methods"],
)
def test_which_request_it_is_about_must_be_plain(api: ApiServer, headers: dict[str, str]) -> None:
    """One of two descriptions could be the caller's own."""
    answer = ask(api, headers, api.token)
    assert (answer.status, "in one way" in answer.json["details"]) == (400, True)
