"""Repositories in pods: an init container that clones each into a volume before the command starts. Pure.

`render_pod.py` calls it. Words of the spec reach the shell as variables, never as its text; the password is read from
the secret by git itself.
"""

from typing import Any

from fairlead.engines.kubernetes.render.context import RenderContext, name_of
from fairlead.formats.losses import Source
from fairlead.model.records.assets import Reference

#: Has git and a shell; operators whose nodes reach no registry give them an image of this name.
IMAGE = "docker.io/alpine/git:v2.49.1"
_SSH_KEYS = ("SshKey", "ssh-privatekey", "PrivateKey", "sshKey", "key")
_CLONE = """set -eu
key="${GIT_KEY_0-}${GIT_KEY_1-}${GIT_KEY_2-}${GIT_KEY_3-}${GIT_KEY_4-}"
if [ -n "$key" ]; then
  umask 077; printf '%s\\n' "$key" > /tmp/key; umask 022
  export GIT_SSH_COMMAND="ssh -i /tmp/key -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new"
fi
helper='!f() { echo "username=$GIT_USER"; echo "password=$GIT_PASSWORD"; }; f'
git -c credential.helper="$helper" clone --quiet ${GIT_BRANCH:+--branch="$GIT_BRANCH"} -- "$GIT_REPOSITORY" /copy
[ -z "${GIT_REVISION-}" ] || git -c safe.directory=/copy -C /copy checkout --quiet --detach "$GIT_REVISION" --
"""


def render_git(
    place: RenderContext, source: Source
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes, mounts of the main container, and the init containers that fill them."""
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    cloning: list[dict[str, Any]] = []
    for number, item in source.items("storage.git"):
        name = f"git-{number}"
        volumes.append({"name": name, "emptyDir": {}})
        mounts.append({"name": name, "mountPath": item["path"]})
        cloning.append(
            {
                "name": name,
                "image": IMAGE,
                "command": ["sh", "-c", _CLONE],
                "env": _environment(place, item),
                "volumeMounts": [{"name": name, "mountPath": "/copy"}],
                # What went wrong is then said in the pod's status.
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        )
        for leaf in [leaf for leaf in source.left if leaf.startswith(f"storage.git[{number}].")]:
            del source.left[leaf]
    return volumes, mounts, cloning


def _environment(place: RenderContext, item: dict[str, Any]) -> list[dict[str, Any]]:
    given = {
        "GIT_REPOSITORY": item.get("repository", ""),
        "GIT_BRANCH": item.get("branch") or "",
        "GIT_REVISION": item.get("revision") or "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "https:ssh",
    }
    found: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in given.items() if value]
    reference = item.get("secretRef") or {}
    secret = reference.get("name") or item.get("passwordSecret")
    if not secret:
        return found
    keys = reference if reference.get("name") else item
    user, password = keys.get("secretKeyOfUser") or "User", keys.get("secretKeyOfPassword") or "Password"
    wanted = {"GIT_USER": user, "GIT_PASSWORD": password}
    is_key = reference.get("authenticationMethod") == "ssh-key"
    if is_key:
        wanted = {f"GIT_KEY_{number}": key for number, key in enumerate(_SSH_KEYS)}
    named = name_of(place, Reference.SECRET, secret)
    for name, key in wanted.items():
        # Of the names that a key may have in its secret, one is there.
        source = {"name": named, "key": key} | ({"optional": True} if is_key else {})
        found.append({"name": name, "valueFrom": {"secretKeyRef": source}})
    return found
