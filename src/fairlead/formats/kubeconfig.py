"""Reads kubeconfigs: what a context names, and the part of it that a cluster added to a server may use.

Called by the Kubernetes engine, by `fairlead cluster` and by the use cases of clusters. The credentials of an added
cluster must be in the text itself: a command or a file would be run or read on the server's machine.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from fairlead.model.errors import ComplianceIssue, Invalid

_CLUSTER = ("server", "certificate-authority-data", "insecure-skip-tls-verify")
_USER = ("token", "client-certificate-data", "client-key-data", "username", "password")
#: Members that name a file, with the member that has its content instead.
FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "tokenFile": "token",
}
_COMMANDS = ("exec", "auth-provider")
_PATH = "kubeconfig"


def read_kubeconfig(text: str, context: str = "") -> str:
    """The part of a kubeconfig that one context needs, as text; raises Invalid with every mistake.

    The context is the named one, or the current one.
    """
    entries = find_entries(text, context)
    cluster, user = entries.cluster, entries.user
    issues = [
        ComplianceIssue(f"{_PATH}.{place}.{name}", f"names a file; give its content as {FILES[name]}")
        for place, part in (("cluster", cluster), ("user", user))
        for name in FILES
        if part.get(name)
    ]
    issues += [
        ComplianceIssue(f"{_PATH}.user.{name}", "is a command, which the server does not run; give a token")
        for name in _COMMANDS
        if user.get(name)
    ]
    if not str(cluster.get("server") or "").startswith(("https://", "http://")):
        issues.append(ComplianceIssue(f"{_PATH}.cluster.server", "must be a URL that begins with https://"))
    if issues:
        raise Invalid(issues=tuple(issues))
    return render_kubeconfig(cluster, user)


class KubeconfigEntries(msgspec.Struct, frozen=True):
    """What one context of a kubeconfig names."""

    context: str
    cluster: dict[str, object]
    user: dict[str, object]


def find_entries(text: str, context: str = "") -> KubeconfigEntries:
    """The cluster and the user of the named context, or of the current one; raises Invalid."""
    try:
        config = yaml.safe_load(text)
        name = context or config["current-context"]
        chosen = _named(config["contexts"], name)["context"]
        cluster = _named(config["clusters"], chosen["cluster"])["cluster"]
        user = _named(config["users"], chosen["user"])["user"] if chosen.get("user") else {}
    except yaml.YAMLError as error:
        raise _invalid(f"is not valid YAML: {' '.join(str(error).split())[:200]}") from None
    except (KeyError, TypeError, StopIteration):
        what = f"context {context[:60]}" if context else "current context"
        raise _invalid(f"has no {what} with a cluster and a user") from None
    user = {} if user is None else user
    if not isinstance(cluster, dict) or not isinstance(user, dict):
        raise _invalid("has a cluster or user that is not an object")
    return KubeconfigEntries(name, cluster, user)


def render_kubeconfig(cluster: Mapping[str, object], user: Mapping[str, object]) -> str:
    """A kubeconfig with one context."""
    parts = {
        "cluster": {name: cluster[name] for name in _CLUSTER if cluster.get(name) is not None},
        "user": {name: user[name] for name in _USER if user.get(name) is not None},
        "context": {"cluster": "added", "user": "added"},
    }
    listed = {f"{name}s": [{"name": "added", name: part}] for name, part in parts.items()}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "added", **listed})


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _invalid(details: str) -> Invalid:
    return Invalid(issues=(ComplianceIssue(_PATH, details),))
