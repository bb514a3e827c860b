"""A browser as far as a sign-on needs one: it keeps cookies and follows the provider."""

import re
from urllib.parse import urlencode, urlsplit

from tests.contract.api.api_server import Answer, ApiServer
from tests.identity_provider import IdentityProvider


class SignOnBrowser:
    def __init__(self, api: ApiServer, provider: IdentityProvider) -> None:
        self.api = api
        self.provider = provider
        self.jar: dict[str, str] = {}
        #: The newest header that set each cookie to a value.
        self.set_cookies: dict[str, str] = {}

    def cookies(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.jar.items())}

    def get(self, path: str) -> Answer:
        return self._keep(self.api.call("GET", path, headers=self.cookies(), token=""))

    def start(self, query: str = "") -> str:
        """Where the server sends the browser."""
        answer = self.get(f"/sign-on/start{query}")
        assert answer.status == 303, answer
        return answer.headers["location"]

    def sign_on(self, query: str = "") -> Answer:
        return self.get(path_of(self.provider.follow(self.start(query))))

    def approve(self, page: Answer) -> Answer:
        match = re.search(rb'name="approval" value="([^"]+)"', page.body)
        assert match, page
        form = urlencode({"approval": match[1].decode()}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", **self.cookies()}
        return self.api.call("POST", "/sign-on/approve", form, headers, token="")

    def session(self) -> str:
        """Who is signed in in this browser."""
        return str(self.get("/api/v1/session").json["username"])

    def _keep(self, answer: Answer) -> Answer:
        for line in answer.all_headers("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.jar[name] = value
            if value:
                self.set_cookies[name] = line
        return answer


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"
