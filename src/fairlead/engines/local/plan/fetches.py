"""What is fetched into a volume before a start: the repository or bucket, and the credentials for it. Computes only.

Called by `volumes.py`; `storage/fetching.py` does it in the pod's process. The credentials go over a socket to the
supervisor and are never written to disk.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from fairlead.engines.local.launch_order import BucketFetch, GitFetch
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import BucketMount, GitMount

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


def check_protocol(repository: str, field: str, settings: LocalSettings) -> None:
    """Raise Refused if the operator does not let repositories be fetched that way."""
    if protocol_of(repository) not in settings.git_protocols:
        allowed = ", ".join(settings.git_protocols)
        raise Refused(f"{field}.repository: repositories are fetched by {allowed} here; '{repository[:200]}' is not")


def render_git(mount: GitMount, field: str, secrets: Secrets, settings: LocalSettings) -> GitFetch:
    repository = mount.repository
    check_protocol(repository, field, settings)
    for name, value in (("branch", mount.branch), ("revision", mount.revision)):
        if value and not _REVISION.match(value):
            raise Refused(f"{field}.{name}: '{value}' is not a valid name of a branch, tag or commit")
    fetch = GitFetch(
        field=field,
        at=mount.path,
        repository=repository,
        branch=mount.branch or "",
        revision=mount.revision or "",
        protocols=":".join(settings.git_protocols),
        seconds=settings.fetch_seconds,
        silence=settings.fetch_silence_seconds,
    )
    return _sign_in(fetch, mount, secrets)


def _sign_in(fetch: GitFetch, mount: GitMount, secrets: Secrets) -> GitFetch:
    """The fetch with the credentials of the mount's secret."""
    name, field = mount.secret, fetch.field
    if not name:
        return fetch
    values = _values(name, field, secrets)
    reference = mount.secret_ref if mount.secret_ref is not None and mount.secret_ref.name else None
    if reference is not None and reference.authentication_method == "ssh-key":
        named = reference.secret_key_of_password
        wanted = [named] if named != "Password" else [*SSH_KEYS, "Password"]
        key = next((values[one] for one in wanted if one in values), None)
        if key is None:
            raise Refused(f"{field}.secretRef: secret '{name}' has no key {' or '.join(wanted)} with an SSH key in it")
        return fetch._replace(key=key)
    chosen = reference or mount
    user = _value(values, chosen.secret_key_of_user, name, field)
    return fetch._replace(user=user, password=_value(values, chosen.secret_key_of_password, name, field))


def _values(name: str, field: str, secrets: Secrets) -> Mapping[str, str]:
    values = secrets.get(name)
    if values is None:
        raise Refused(f"{field}: there is no secret '{name}'")
    return values


def _value(values: Mapping[str, str], key: str, name: str, field: str) -> str:
    if key not in values:
        raise Refused(f"{field}: secret '{name}' has no key '{key}'")
    return values[key]


def render_s3(mount: BucketMount, field: str, manifest: str, secrets: Secrets, settings: LocalSettings) -> BucketFetch:
    """`manifest` is where it is noted what was copied."""
    url = (mount.url or AMAZON).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused(
            f"{field}.url: '{url[:200]}' is not the address of an S3 service; it must begin with https:// or http://"
        )
    if not _BUCKET.match(mount.bucket):
        raise Refused(f"{field}.bucket: '{mount.bucket[:200]}' is not a valid bucket name")
    access, secret = "", ""
    if mount.access_key_secret:
        values = _values(mount.access_key_secret, field, secrets)
        access = _value(values, mount.secret_key_of_access_key_id, mount.access_key_secret, field)
        secret = _value(values, mount.secret_key_of_secret_key, mount.access_key_secret, field)
    return BucketFetch(
        field=field,
        at=mount.path,
        url=url,
        bucket=mount.bucket,
        manifest=manifest,
        access=access,
        secret=secret,
        seconds=settings.fetch_seconds,
        silence=settings.fetch_silence_seconds,
    )
