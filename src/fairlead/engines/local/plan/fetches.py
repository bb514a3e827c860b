"""What is fetched into a volume before a start, as data: the repository or bucket, and who signs in how. Pure.

Called by `volumes.py`; `fetching.py` carries it out in the pod's process. Credentials are in these dicts, which pass
over a socket to the supervisor and are never written down.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused

Item = dict[str, Any]
Secrets = Mapping[str, Mapping[str, str]]

#: `user@host:path`, the short form of an ssh address.
_SHORT_SSH = re.compile(r"[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:(?!//).+\Z")
#: A branch, tag or commit that no option can be made of.
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@^~{}+-]*\Z")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}\Z")
AMAZON = "https://s3.amazonaws.com"
#: Where a credential's key lies by default, as credentials are made by this server.
SSH_KEYS = ("SshKey", "ssh-privatekey", "PrivateKey", "sshKey", "key")


def protocol_of(repository: str) -> str:
    if _SHORT_SSH.match(repository):
        return "ssh"
    return repository.partition("://")[0].lower() if "://" in repository else ""


def render_git(item: Item, field: str, secrets: Secrets, settings: LocalSettings) -> Item:
    repository = item["repository"]
    protocol = protocol_of(repository)
    if protocol not in settings.git_protocols:
        allowed = ", ".join(settings.git_protocols)
        raise Refused(f"{field}.repository: repositories are fetched by {allowed} here; '{repository[:200]}' is not")
    for name in ("branch", "revision"):
        if item.get(name) and not _REVISION.match(item[name]):
            raise Refused(f"{field}.{name}: '{item[name]}' names no branch, tag or commit")
    return {
        "kind": "git",
        "field": field,
        "at": item["path"],
        "repository": repository,
        "branch": item.get("branch") or "",
        "revision": item.get("revision") or "",
        "protocols": ":".join(settings.git_protocols),
        "seconds": settings.fetch_seconds,
        "silence": settings.fetch_silence_seconds,
        **_credentials(item, field, secrets),
    }


def _credentials(item: Item, field: str, secrets: Secrets) -> Item:
    reference = item.get("secretRef") or {}
    name = reference.get("name") or item.get("passwordSecret")
    if not name:
        return {"user": "", "password": "", "key": ""}
    values = _values(name, field, secrets)
    if reference.get("name") and reference.get("authenticationMethod") == "ssh-key":
        named = reference.get("secretKeyOfPassword")
        wanted = [named] if named and named != "Password" else [*SSH_KEYS, "Password"]
        key = next((values[one] for one in wanted if one in values), None)
        if key is None:
            raise Refused(f"{field}.secretRef: secret '{name}' has no key {' or '.join(wanted)} with an SSH key in it")
        return {"user": "", "password": "", "key": key}
    source = reference if reference.get("name") else item
    chosen = {part: source.get(f"secretKeyOf{part.capitalize()}") or part.capitalize() for part in ("user", "password")}
    return {"key": "", **{part: _value(values, key, name, field) for part, key in chosen.items()}}


def _values(name: str, field: str, secrets: Secrets) -> Mapping[str, str]:
    values = secrets.get(name)
    if values is None:
        raise Refused(f"{field}: there is no secret '{name}'")
    return values


def _value(values: Mapping[str, str], key: str, name: str, field: str) -> str:
    if key not in values:
        raise Refused(f"{field}: secret '{name}' has no key '{key}'")
    return values[key]


def render_s3(item: Item, field: str, secrets: Secrets, settings: LocalSettings) -> Item:
    url = (item.get("url") or AMAZON).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused(f"{field}.url: '{url[:200]}' is no address of an S3 service; it begins with https:// or http://")
    if not _BUCKET.match(item["bucket"]):
        raise Refused(f"{field}.bucket: '{item['bucket'][:200]}' is no bucket's name")
    access, secret = "", ""
    name = item.get("accessKeySecret")
    if name:
        values = _values(name, field, secrets)
        access = _value(values, item.get("secretKeyOfAccessKeyId") or "AccessKeyId", name, field)
        secret = _value(values, item.get("secretKeyOfSecretKey") or "SecretKey", name, field)
    return {
        "kind": "s3",
        "field": field,
        "at": item["path"],
        "url": url,
        "bucket": item["bucket"],
        "access": access,
        "secret": secret,
        "seconds": settings.fetch_seconds,
        "silence": settings.fetch_silence_seconds,
    }
