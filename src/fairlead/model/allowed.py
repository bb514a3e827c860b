"""What the operator of a server allows pods to do: the values of `--allow`, as data.

Engines refuse what is not allowed, and name the value that would allow it: `local` in shared mode, `kubernetes` always.
"""

from collections.abc import Sequence

import msgspec

from fairlead.model.errors import Invalid


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """What is refused unless the server was started with the `--allow` value for it."""

    no_isolation: bool = False
    #: Folders below which host paths may be mounted; empty for none.
    host_paths: tuple[str, ...] = ()
    root_user: bool = False
    #: Whether pods may run under user ids that belong to accounts of this machine.
    machine_users: bool = False
    capabilities: tuple[str, ...] = ()
    #: Protocols by which repositories may be cloned in addition to https and ssh.
    git_protocols: tuple[str, ...] = ()
    host_namespaces: bool = False
    #: Whether pods of this machine may run without networks of their own if it cannot provide them.
    shared_network: bool = False
    #: Whether pods of a cluster may turn off the seccomp filter of the runtime.
    unconfined: bool = False

    def has_path(self, path: str) -> bool:
        """Whether it is one of the allowed folders, or is below one."""
        plain = path.rstrip("/")
        return ".." not in path.split("/") and any(
            f"{plain}/".startswith(f"{folder.rstrip('/')}/") for folder in self.host_paths
        )

    def path_refusal(self, path: str) -> str:
        """Why that path is refused, and how to allow it."""
        known = ", ".join(self.host_paths)
        allowed = f"allowed are {known}" if known else "none is allowed"
        return f"'{path}' is not below an allowed folder ({allowed}); start the server with --allow host-path={path}"


NOTHING_ALLOWED = Allowed()
_PLAIN = ("host-namespaces", "machine-users", "no-isolation", "root-user", "shared-network", "unconfined")
#: Values that take an argument, with its name.
_VALUED = {"host-path": "FOLDER", "capability": "NAME", "git-protocol": "NAME"}
#: All of them, for messages.
ALLOWABLE = ", ".join([*_PLAIN, *(f"{key}={value}" for key, value in _VALUED.items())])


def parse_allowed(values: Sequence[str]) -> Allowed:
    """Parse `no-isolation`, `host-path=FOLDER`, `capability=NAME` …; raises Invalid for unknown values."""
    plain = {word for word in values if "=" not in word}
    valued = [(key, value) for key, equals, value in (word.partition("=") for word in values) if equals]
    unknown = [*(plain - set(_PLAIN)), *(key for key, value in valued if key not in _VALUED or not value)]
    if unknown:
        raise Invalid(f"'{min(unknown)}' cannot be allowed; known are {ALLOWABLE}")
    return Allowed(
        no_isolation="no-isolation" in plain,
        root_user="root-user" in plain,
        machine_users="machine-users" in plain,
        host_namespaces="host-namespaces" in plain,
        shared_network="shared-network" in plain,
        unconfined="unconfined" in plain,
        git_protocols=tuple(value for key, value in valued if key == "git-protocol"),
        host_paths=tuple(value for key, value in valued if key == "host-path"),
        capabilities=tuple(value for key, value in valued if key == "capability"),
    )
