"""The settings of sign-on with an identity provider, and the checks that need no network.

`settings.py` of the package reads the flags; `app` and the preflight call `check_sign_on`.
"""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from fairlead.model.errors import Refused

DEFAULT_SCOPES = ("openid", "email", "profile", "groups", "offline_access")


class SignOnSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: The provider's address, as it stands in its tokens; empty for no sign-on.
    issuer: str = ""
    client_id: str = ""
    #: A file with the client's secret; empty for a public client.
    client_secret_file: str = ""
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    #: The claims with the user's name and with the groups.
    username_claim: str = "email"
    groups_claim: str = "groups"
    #: The domains of mail addresses that may sign on; empty for all.
    domains: tuple[str, ...] = ()
    #: Further clients of the provider whose tokens scripts may exchange.
    audiences: tuple[str, ...] = ()
    #: A file with the authorities that are trusted for the provider's certificate; empty for those of the machine.
    ca_file: str = ""
    #: What the button on the page calls the provider.
    name: str = "single sign-on"
    #: Where browsers reach this server; empty for the address that they ask for.
    public_url: str = ""


def check_sign_on(settings: SignOnSettings, *, binds_equal_names: bool = False) -> None:
    """Raise Refused if the settings contradict each other or name files that cannot be read."""
    if settings.public_url:
        _check_url("--public-url", settings.public_url)
    if not settings.issuer:
        if settings.client_id or settings.client_secret_file:
            raise Refused("--oidc-client-id and --oidc-client-secret-file need --oidc-issuer")
        return
    _check_url("--oidc-issuer", settings.issuer)
    if not settings.client_id:
        raise Refused(
            "--oidc-issuer needs --oidc-client-id: the id of the client that the provider has for this server"
        )
    if "openid" not in settings.scopes:
        raise Refused("--oidc-scopes must include openid")
    if binds_equal_names and len(settings.domains) != 1:
        raise Refused(
            "--bind-users equal-names needs exactly one --oidc-domain: otherwise ann@elsewhere.example could sign on "
            "and run pods as the account ann of this machine"
        )
    load_client_secret(settings)
    if settings.ca_file and not Path(settings.ca_file).is_file():
        raise Refused(f"The file of --oidc-ca-file, {settings.ca_file}, does not exist")


def may_sign_on(settings: SignOnSettings, name: str) -> bool:
    """Whether people of this name, in lower case, may sign on with the provider."""
    return not settings.domains or domain_of(name) in settings.domains


def domain_of(name: str) -> str:
    """The domain of a mail address; empty for other names."""
    return name.rpartition("@")[2] if "@" in name else ""


def load_client_secret(settings: SignOnSettings) -> str:
    """The client's secret; empty for a public client. Read at every use, so that it can be replaced."""
    if not settings.client_secret_file:
        return ""
    try:
        secret = Path(settings.client_secret_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"The file of --oidc-client-secret-file cannot be read: {error}") from error
    if not secret:
        raise Refused(f"The file of --oidc-client-secret-file, {settings.client_secret_file}, is empty")
    return secret


def _check_url(flag: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Refused(f"{flag} is {url[:200]!r}, which is not a URL such as https://login.example.com")
    if flag == "--oidc-issuer" and parts.scheme == "http" and not is_loopback(parts.hostname):
        raise Refused("--oidc-issuer must start with https://: plain HTTP is accepted on this machine only")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
