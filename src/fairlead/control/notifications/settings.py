"""What an operator sets about notifications. `settings.py` of the package reads the flags."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from fairlead.model.errors import Refused

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
#: The only part of IPv6 with public addresses. Others that lead to private hosts, such as fec0::/10, count as global
#: in the library.
_UNICAST = ipaddress.IPv6Network("2000::/3")


class NotificationSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: The mail server, such as smtp://user@mail.example.com:587 or smtps://…; empty for no mail.
    smtp_url: str = ""
    smtp_password_file: str = ""
    #: The sender of mails.
    smtp_from: str = ""
    #: Hosts and networks that webhooks may reach although they are private.
    allowed: tuple[str, ...] = ()
    #: Where browsers reach this server, for links; empty for no links.
    public_url: str = ""


def check_notifications(settings: NotificationSettings) -> None:
    """Raise Refused if the settings contradict each other."""
    if settings.smtp_url:
        parts = urlsplit(settings.smtp_url)
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
            raise Refused(
                f"--smtp-url is {settings.smtp_url!r}, which is not a URL such as smtp://mail.example.com:587"
            )
        if not settings.smtp_from:
            raise Refused("--smtp-url needs --smtp-from: the sender of mails")
    if settings.smtp_password_file and not Path(settings.smtp_password_file).is_file():
        raise Refused(f"The file of --smtp-password-file, {settings.smtp_password_file}, does not exist")


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that connections to this address reach, if it is one of those that carry one."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def is_allowed_address(settings: NotificationSettings, host: str, address: str) -> bool:
    """Whether a webhook may connect to this address of a host: it is public, or the operator allows it."""
    outer = ipaddress.ip_address(address)
    inner = _embedded(outer) if isinstance(outer, ipaddress.IPv6Address) else outer
    for entry in settings.allowed:
        if entry.lower() == host.lower():
            return True
        try:
            if inner in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    if isinstance(inner, ipaddress.IPv6Address) and inner not in _UNICAST:
        return False
    return inner.is_global and not inner.is_multicast
