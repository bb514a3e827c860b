"""Git repositories in pods: an init container clones each into a volume before the command starts. Pure.

Values of the spec reach the shell as variables, never as part of its script. Git itself reads the password from the
secret.
"""

from typing import Any

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, name_of
from fairlead.formats.losses import Source
from fairlead.model.records.assets import Reference

#: Has git and a shell. On nodes without a registry, operators load an image of this name.
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


def render_git(context: RenderContext, source: Source) -> tuple[list[Manifest], list[Manifest], list[Manifest]]:
    """Volumes, mounts of the main container, and the init containers that fill them."""
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []
    cloning: list[Manifest] = []
    for number, item in source.items("storage.git"):
        name = f"git-{number}"
        volumes.append({"name": name, "emptyDir": {}})
        mounts.append({"name": name, "mountPath": item["path"]})
        cloning.append(
            {
                "name": name,
                "image": IMAGE,
                "command": ["sh", "-c", _CLONE],
                "env": _environment(context, item),
                "volumeMounts": [{"name": name, "mountPath": "/copy"}],
                # So that the pod's status shows the error.
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        )
        source.take_below(f"storage.git[{number}].")
    return volumes, mounts, cloning


def _environment(context: RenderContext, item: dict[str, Any]) -> list[Manifest]:
    given = {
        "GIT_REPOSITORY": item.get("repository", ""),
        "GIT_BRANCH": item.get("branch") or "",
        "GIT_REVISION": item.get("revision") or "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "https:ssh",
    }
    variables: list[Manifest] = [{"name": name, "value": value} for name, value in given.items() if value]
    reference = item.get("secretRef") or {}
    secret = reference.get("name") or item.get("passwordSecret")
    if not secret:
        return variables
    keys = reference if reference.get("name") else item
    user, password = keys.get("secretKeyOfUser") or "User", keys.get("secretKeyOfPassword") or "Password"
    wanted = {"GIT_USER": user, "GIT_PASSWORD": password}
    is_key = reference.get("authenticationMethod") == "ssh-key"
    if is_key:
        known = [password] if password != "Password" else _SSH_KEYS  # noqa: S105 - the names of keys
        wanted = {f"GIT_KEY_{number}": key for number, key in enumerate(known)}
    secret_name = name_of(context, Reference.SECRET, secret)
    for name, key in wanted.items():
        # The secret has its key under one of these names.
        source = {"name": secret_name, "key": key} | ({"optional": True} if is_key else {})
        variables.append({"name": name, "valueFrom": {"secretKeyRef": source}})
    return variables
